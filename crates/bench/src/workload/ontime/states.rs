//! States as the air-traffic data number them: FIPS code, name, and the department's world area code.

/// A state or territory.
pub struct State {
    /// Two letters.
    pub code: &'static str,
    /// FIPS code, two digits.
    pub fips: &'static str,
    /// Full name.
    pub name: &'static str,
    /// World area code.
    pub area: i64,
}

const fn state(code: &'static str, fips: &'static str, name: &'static str, area: i64) -> State {
    State { code, fips, name, area }
}

/// Those with airports in the data.
pub const STATES: [State; 52] = [
    state("AK", "02", "Alaska", 1),
    state("AL", "01", "Alabama", 51),
    state("AR", "05", "Arkansas", 71),
    state("AZ", "04", "Arizona", 81),
    state("CA", "06", "California", 91),
    state("CO", "08", "Colorado", 82),
    state("CT", "09", "Connecticut", 11),
    state("DE", "10", "Delaware", 31),
    state("FL", "12", "Florida", 33),
    state("GA", "13", "Georgia", 34),
    state("HI", "15", "Hawaii", 2),
    state("IA", "19", "Iowa", 61),
    state("ID", "16", "Idaho", 83),
    state("IL", "17", "Illinois", 41),
    state("IN", "18", "Indiana", 42),
    state("KS", "20", "Kansas", 62),
    state("KY", "21", "Kentucky", 52),
    state("LA", "22", "Louisiana", 72),
    state("MA", "25", "Massachusetts", 13),
    state("MD", "24", "Maryland", 35),
    state("ME", "23", "Maine", 12),
    state("MI", "26", "Michigan", 43),
    state("MN", "27", "Minnesota", 63),
    state("MO", "29", "Missouri", 64),
    state("MS", "28", "Mississippi", 53),
    state("MT", "30", "Montana", 84),
    state("NC", "37", "North Carolina", 36),
    state("ND", "38", "North Dakota", 66),
    state("NE", "31", "Nebraska", 65),
    state("NH", "33", "New Hampshire", 14),
    state("NJ", "34", "New Jersey", 21),
    state("NM", "35", "New Mexico", 86),
    state("NV", "32", "Nevada", 85),
    state("NY", "36", "New York", 22),
    state("OH", "39", "Ohio", 44),
    state("OK", "40", "Oklahoma", 73),
    state("OR", "41", "Oregon", 92),
    state("PA", "42", "Pennsylvania", 23),
    state("PR", "72", "Puerto Rico", 3),
    state("RI", "44", "Rhode Island", 15),
    state("SC", "45", "South Carolina", 37),
    state("SD", "46", "South Dakota", 67),
    state("TN", "47", "Tennessee", 54),
    state("TX", "48", "Texas", 74),
    state("UT", "49", "Utah", 87),
    state("VA", "51", "Virginia", 38),
    state("VI", "78", "U.S. Virgin Islands", 4),
    state("VT", "50", "Vermont", 16),
    state("WA", "53", "Washington", 93),
    state("WI", "55", "Wisconsin", 45),
    state("WV", "54", "West Virginia", 39),
    state("WY", "56", "Wyoming", 88),
];
