//! Rows of the air-traffic table, resampled from real flights.
//!
//! Source: 70,000 flights of April to June 2008 (`data/flights-2008-sample.csv.gz`, with its licence in
//! `data/README.md`) and the airports' cities. Each row is one of them, all equally likely and each as often as it
//! comes, with another date, so that times, delays, airports and airlines of a row belong together.
//!
//! Dates: 1988 to 2009, each year with its share of the flights that were published (in thousands below), the
//! months of a year alike, rows in the order of months as the monthly files come; within a month any day.
//!
//! What the source lacks is derived as the publisher derives it (states, groups of delays and distances, blocks of
//! an hour, wheels off and on from taxi times), or is NULL: everything about stops on the way. A flight without an
//! arrival that was not cancelled counts as diverted, with one landing elsewhere.
//!
//! All but the first six columns of a row are made once for each of the flights; a row is then two copies.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::GzDecoder;

use super::super::calendar::{day_of, days_of_month, weekday_of};
use super::states::STATES;
use crate::error::{Error, Result};
use crate::generate::{Fields, Random, Source};

const FLIGHTS: &[u8] = include_bytes!("../../../../../data/flights-2008-sample.csv.gz");
const AIRPORTS: &str = include_str!("../../../../../data/airports.csv");

const FIRST_YEAR: u32 = 1988;
/// Thousands of flights published for each year from 1988.
const FLIGHTS_OF_YEAR: [u64; 22] = [
    5202, 5041, 5271, 5077, 5092, 5071, 5180, 5327, 5352, 5412, 5385, 5528, 5683, 5968, 5271, 6489, 7129,
    7141, 7142, 7453, 7010, 6450,
];
const MONTHS: u64 = 12;

/// Number of the airline at the department, by code; those of the sample.
const AIRLINES: [(&str, i64); 4] = [("WN", 19393), ("FL", 20437), ("HA", 19690), ("MQ", 20398)];

/// The rows of the table.
pub struct Flights {
    rows: u64,
    /// Columns from the seventh on, of all flights one after the other.
    tails: Vec<u8>,
    ends: Vec<u32>,
    /// Flights published before the year, and in all at the end.
    before_year: Vec<u64>,
}

impl Flights {
    /// So many rows. Errors: the sample inside this program is damaged.
    pub fn new(rows: u64) -> Result<Flights> {
        let mut text = String::new();
        GzDecoder::new(FLIGHTS)
            .read_to_string(&mut text)
            .map_err(|error| Error::Data(format!("the sample of flights: {error}")))?;
        let cities = cities();
        let (mut fields, mut ends) = (Fields::default(), Vec::new());
        for line in text.lines().skip(1) {
            let raw: Vec<&str> = line.split(',').collect();
            if raw.len() != RAW_COLUMNS {
                return Err(Error::Data(format!(
                    "the sample of flights has a line of {} columns",
                    raw.len()
                )));
            }
            flight(&raw, &cities, &mut fields);
            fields.end();
            ends.push(fields.bytes().len() as u32);
        }
        let mut before_year = vec![0];
        for flights in FLIGHTS_OF_YEAR {
            before_year.push(before_year[before_year.len() - 1] + flights);
        }
        Ok(Flights { rows, tails: fields.bytes().to_vec(), ends, before_year })
    }

    fn tail(&self, flight: usize) -> &[u8] {
        let start = if flight == 0 { 0 } else { self.ends[flight - 1] };
        // Without the line feed.
        &self.tails[start as usize..self.ends[flight] as usize - 1]
    }

    /// Year and month of a row.
    fn month_of(&self, row: u64) -> (u32, u32) {
        let total = self.before_year[FLIGHTS_OF_YEAR.len()];
        // The place of the row among all flights published, in twelfths of the unit of the table.
        let place = (u128::from(row) * u128::from(total * MONTHS) / u128::from(self.rows)) as u64;
        let year = self.before_year.partition_point(|&before| before * MONTHS <= place) - 1;
        let within = place - self.before_year[year] * MONTHS;
        (FIRST_YEAR + year as u32, (within / FLIGHTS_OF_YEAR[year]) as u32 + 1)
    }
}

impl Source for Flights {
    fn name(&self) -> &str {
        "ontime"
    }

    fn units(&self) -> u64 {
        self.rows
    }

    fn block_units(&self) -> u64 {
        1024
    }

    fn fill(&self, row: u64, random: &mut Random, fields: &mut Fields) {
        let (year, month) = self.month_of(row);
        let day = random.below(u64::from(days_of_month(year, month))) as u32 + 1;
        let weekday = weekday_of(day_of(year, month, day));
        let flight = random.below(self.ends.len() as u64) as usize;
        fields.int(i64::from(year)).int(i64::from(month.div_ceil(3))).int(i64::from(month));
        fields
            .int(i64::from(day))
            .int(i64::from(weekday))
            .date(year, month, day)
            .raw(self.tail(flight))
            .end();
    }
}

/// Columns of the sample, by place.
const RAW_COLUMNS: usize = 29;
const DEP_TIME: usize = 4;
const CRS_DEP_TIME: usize = 5;
const ARR_TIME: usize = 6;
const CRS_ARR_TIME: usize = 7;
const CARRIER: usize = 8;
const FLIGHT_NUMBER: usize = 9;
const TAIL_NUMBER: usize = 10;
const ACTUAL_ELAPSED: usize = 11;
const CRS_ELAPSED: usize = 12;
const AIR_TIME: usize = 13;
const ARR_DELAY: usize = 14;
const DEP_DELAY: usize = 15;
const ORIGIN: usize = 16;
const DEST: usize = 17;
const DISTANCE: usize = 18;
const TAXI_IN: usize = 19;
const TAXI_OUT: usize = 20;
const CANCELLATION_CODE: usize = 22;
const FIRST_DELAY_REASON: usize = 24;

const COLUMNS_AFTER_LANDINGS: usize = 34;

/// The columns from UniqueCarrier on.
fn flight(raw: &[&str], cities: &HashMap<&str, (String, &str)>, fields: &mut Fields) {
    let number = |column: usize| raw[column].parse::<i64>().ok();
    let text = |column: usize| Some(raw[column]).filter(|text| !matches!(*text, "" | "NA" | "\\N"));
    let cancelled = text(CANCELLATION_CODE).is_some();
    let diverted = !cancelled && number(ARR_TIME).is_none();
    let airline = AIRLINES.iter().find(|(code, _)| *code == raw[CARRIER]).map(|(_, number)| *number);
    put_text(fields, text(CARRIER));
    put(fields, airline);
    put_text(fields, text(CARRIER));
    put_text(fields, text(TAIL_NUMBER));
    put_text(fields, text(FLIGHT_NUMBER));
    airport(raw[ORIGIN], cities, fields);
    airport(raw[DEST], cities, fields);
    put(fields, number(CRS_DEP_TIME));
    put(fields, number(DEP_TIME));
    delay(number(DEP_DELAY), fields);
    block(number(CRS_DEP_TIME), fields);
    put(fields, number(TAXI_OUT));
    put(fields, number(DEP_TIME).zip(number(TAXI_OUT)).map(|(time, taxi)| clock(time, taxi)));
    put(fields, number(ARR_TIME).zip(number(TAXI_IN)).map(|(time, taxi)| clock(time, -taxi)));
    put(fields, number(TAXI_IN));
    put(fields, number(CRS_ARR_TIME));
    put(fields, number(ARR_TIME));
    delay(number(ARR_DELAY), fields);
    block(number(CRS_ARR_TIME), fields);
    fields.int(i64::from(cancelled));
    put_text(fields, text(CANCELLATION_CODE));
    fields.int(i64::from(diverted));
    put(fields, number(CRS_ELAPSED));
    put(fields, number(ACTUAL_ELAPSED));
    put(fields, number(AIR_TIME));
    fields.int(1);
    put(fields, number(DISTANCE));
    put(fields, number(DISTANCE).map(|miles| (miles / 250 + 1).min(11)));
    for reason in FIRST_DELAY_REASON..RAW_COLUMNS {
        put(fields, number(reason));
    }
    // FirstDepTime, TotalAddGTime, LongestAddGTime.
    fields.null().null().null();
    fields.int(i64::from(diverted));
    for _ in 0..COLUMNS_AFTER_LANDINGS {
        fields.null();
    }
}

fn put(fields: &mut Fields, value: Option<i64>) {
    match value {
        Some(value) => fields.int(value),
        None => fields.null(),
    };
}

fn put_text(fields: &mut Fields, text: Option<&str>) {
    match text {
        Some(text) => fields.text(text.as_bytes()),
        None => fields.null(),
    };
}

/// Code, city, state, and the state's numbers and name.
fn airport(code: &str, cities: &HashMap<&str, (String, &str)>, fields: &mut Fields) {
    fields.text(code.as_bytes());
    let known = cities.get(code);
    put_text(fields, known.map(|(city, _)| city.as_str()));
    put_text(fields, known.map(|(_, state)| *state));
    let state = known.and_then(|(_, state)| STATES.iter().find(|one| one.code == *state));
    put_text(fields, state.map(|one| one.fips));
    put_text(fields, state.map(|one| one.name));
    put(fields, state.map(|one| one.area));
}

/// The delay, without negative ones, whether it is 15 minutes or more, and its quarter of an hour (-2 to 12).
fn delay(minutes: Option<i64>, fields: &mut Fields) {
    put(fields, minutes);
    put(fields, minutes.map(|minutes| minutes.max(0)));
    put(fields, minutes.map(|minutes| i64::from(minutes >= 15)));
    put(fields, minutes.map(|minutes| minutes.div_euclid(15).clamp(-2, 12)));
}

/// The hour of a time, as 0900-0959; the night is one block.
fn block(time: Option<i64>, fields: &mut Fields) {
    match time.map(|time| time / 100 % 24) {
        None => fields.null(),
        Some(0..=5) => fields.text(b"0001-0559"),
        Some(hour) => fields.text(format!("{hour:02}00-{hour:02}59").as_bytes()),
    };
}

/// A time as hhmm, so many minutes later.
fn clock(time: i64, minutes: i64) -> i64 {
    const DAY: i64 = 24 * 60;
    let later = (time / 100 * 60 + time % 100 + minutes).rem_euclid(DAY);
    later / 60 * 100 + later % 60
}

/// "City, ST" and state by the airport's code, where the source knows them.
fn cities() -> HashMap<&'static str, (String, &'static str)> {
    let mut cities = HashMap::new();
    for line in AIRPORTS.lines().skip(1) {
        // Only names have quotes, and some of those a comma; they come before the city.
        let Some((code, rest)) = line.split_once(',') else { continue };
        let after_name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once("\",").map(|(_, rest)| rest),
            None => rest.split_once(',').map(|(_, rest)| rest),
        };
        let mut parts = after_name.unwrap_or_default().split(',');
        if let (Some(city), Some(state)) = (parts.next(), parts.next()) {
            if !matches!(city, "" | "NA") && !matches!(state, "" | "NA") {
                cities.insert(code, (format!("{city}, {state}"), state));
            }
        }
    }
    cities
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flights: &Flights, number: u64) -> String {
        let mut fields = Fields::default();
        flights.fill(number, &mut Random::new(number), &mut fields);
        String::from_utf8(fields.bytes().to_vec()).unwrap()
    }

    #[test]
    fn dates_go_from_the_first_month_to_the_last() {
        let flights = Flights::new(100_000).unwrap();
        assert_eq!((flights.month_of(0), flights.month_of(99_999)), ((1988, 1), (2009, 12)));
        let months: Vec<_> = (0..100_000).map(|row| flights.month_of(row)).collect();
        assert!(months.is_sorted());
        let of_2004 = months.iter().filter(|month| month.0 == 2004).count();
        assert!(of_2004.abs_diff(100_000 * 7129 / 128_674) < 10, "{of_2004}");
        // Fewer rows than months: still all of them within the range.
        assert_eq!(Flights::new(1).unwrap().month_of(0), (1988, 1));
    }

    #[test]
    fn clocks_and_delays_are_the_publishers() {
        assert_eq!([clock(2350, 15), clock(5, -10), clock(1201, 8)], [5, 2355, 1209]);
        let mut fields = Fields::default();
        delay(Some(-20), &mut fields);
        delay(Some(200), &mut fields);
        delay(None, &mut fields);
        block(Some(540), &mut fields);
        block(Some(2359), &mut fields);
        assert_eq!(
            fields.bytes(),
            b"-20,0,0,-2,200,200,1,12,NULL,NULL,NULL,NULL,\"0001-0559\",\"2300-2359\""
        );
    }

    #[test]
    fn a_known_flight_has_its_city_state_and_wheels() {
        let flights = Flights::new(10).unwrap();
        let first = String::from_utf8(flights.tail(0).to_vec()).unwrap();
        let expected = "\"WN\",19393,\"WN\",\"N333SW\",\"165\",\"MCI\",\"Kansas City, MO\",\"MO\",\"29\",\"Missouri\",64,\
                        \"BNA\",\"Nashville, TN\",\"TN\",\"47\",\"Tennessee\",54,1140,1201,21,21,1,1,\"1100-1159\",\
                        8,1209,1346,6,1305,1352,47,47,1,3,\"1300-1359\",0,NULL,0,85,111,97,1,491,2,21,0,26,0,0,";
        assert!(first.starts_with(expected), "{first}");
    }

    #[test]
    fn all_airports_of_the_sample_have_a_state_with_numbers() {
        let flights = Flights::new(10).unwrap();
        let text = String::from_utf8(flights.tails.clone()).unwrap();
        // Fips numbers are between quotes, so a missing one shows as a bare NULL after the two-letter state.
        assert!(!text.contains("\",NULL,NULL,NULL,\""), "a state that is not in the table");
        assert!(row(&flights, 3).ends_with(",NULL\n"));
    }
}
