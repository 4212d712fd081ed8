//! The air-traffic table: the 93 columns that the On-Time Performance data had when the benchmark was made, in
//! their order. Later files have some more (numbers of airports and cities), and other names for the airline's
//! columns; `csv` finds its way by the header line.

/// A column: its name, its type, and what later files call it.
pub struct Column {
    /// In the table.
    pub name: &'static str,
    /// In SQL.
    pub sql_type: &'static str,
    /// In later files; empty if the same.
    pub later: &'static str,
}

const fn column(name: &'static str, sql_type: &'static str) -> Column {
    Column { name, sql_type, later: "" }
}

const fn renamed(name: &'static str, sql_type: &'static str, later: &'static str) -> Column {
    Column { name, sql_type, later }
}

const MINUTES: &str = "SMALLINT";
const CLOCK: &str = "SMALLINT";
const FLAG: &str = "TINYINT";

/// All columns in their order.
pub const COLUMNS: [Column; 93] = [
    column("Year", "SMALLINT NOT NULL"),
    column("Quarter", "TINYINT NOT NULL"),
    column("Month", "TINYINT NOT NULL"),
    column("DayofMonth", "TINYINT NOT NULL"),
    column("DayOfWeek", "TINYINT NOT NULL"),
    column("FlightDate", "DATE NOT NULL"),
    renamed("UniqueCarrier", "CHAR(7)", "Reporting_Airline"),
    renamed("AirlineID", "INT", "DOT_ID_Reporting_Airline"),
    renamed("Carrier", "CHAR(2)", "IATA_CODE_Reporting_Airline"),
    renamed("TailNum", "VARCHAR(50)", "Tail_Number"),
    renamed("FlightNum", "VARCHAR(10)", "Flight_Number_Reporting_Airline"),
    column("Origin", "CHAR(5)"),
    column("OriginCityName", "VARCHAR(100)"),
    column("OriginState", "CHAR(2)"),
    column("OriginStateFips", "VARCHAR(10)"),
    column("OriginStateName", "VARCHAR(100)"),
    column("OriginWac", "SMALLINT"),
    column("Dest", "CHAR(5)"),
    column("DestCityName", "VARCHAR(100)"),
    column("DestState", "CHAR(2)"),
    column("DestStateFips", "VARCHAR(10)"),
    column("DestStateName", "VARCHAR(100)"),
    column("DestWac", "SMALLINT"),
    column("CRSDepTime", CLOCK),
    column("DepTime", CLOCK),
    column("DepDelay", MINUTES),
    column("DepDelayMinutes", MINUTES),
    column("DepDel15", FLAG),
    column("DepartureDelayGroups", "TINYINT"),
    column("DepTimeBlk", "VARCHAR(20)"),
    column("TaxiOut", MINUTES),
    column("WheelsOff", CLOCK),
    column("WheelsOn", CLOCK),
    column("TaxiIn", MINUTES),
    column("CRSArrTime", CLOCK),
    column("ArrTime", CLOCK),
    column("ArrDelay", MINUTES),
    column("ArrDelayMinutes", MINUTES),
    column("ArrDel15", FLAG),
    column("ArrivalDelayGroups", "TINYINT"),
    column("ArrTimeBlk", "VARCHAR(20)"),
    column("Cancelled", FLAG),
    column("CancellationCode", "CHAR(1)"),
    column("Diverted", FLAG),
    column("CRSElapsedTime", MINUTES),
    column("ActualElapsedTime", MINUTES),
    column("AirTime", MINUTES),
    column("Flights", "TINYINT"),
    column("Distance", "SMALLINT"),
    column("DistanceGroup", "TINYINT"),
    column("CarrierDelay", MINUTES),
    column("WeatherDelay", MINUTES),
    column("NASDelay", MINUTES),
    column("SecurityDelay", MINUTES),
    column("LateAircraftDelay", MINUTES),
    column("FirstDepTime", CLOCK),
    column("TotalAddGTime", MINUTES),
    column("LongestAddGTime", MINUTES),
    column("DivAirportLandings", "TINYINT"),
    column("DivReachedDest", FLAG),
    column("DivActualElapsedTime", MINUTES),
    column("DivArrDelay", MINUTES),
    column("DivDistance", "SMALLINT"),
    column("Div1Airport", "CHAR(5)"),
    column("Div1WheelsOn", CLOCK),
    column("Div1TotalGTime", MINUTES),
    column("Div1LongestGTime", MINUTES),
    column("Div1WheelsOff", CLOCK),
    column("Div1TailNum", "VARCHAR(10)"),
    column("Div2Airport", "CHAR(5)"),
    column("Div2WheelsOn", CLOCK),
    column("Div2TotalGTime", MINUTES),
    column("Div2LongestGTime", MINUTES),
    column("Div2WheelsOff", CLOCK),
    column("Div2TailNum", "VARCHAR(10)"),
    column("Div3Airport", "CHAR(5)"),
    column("Div3WheelsOn", CLOCK),
    column("Div3TotalGTime", MINUTES),
    column("Div3LongestGTime", MINUTES),
    column("Div3WheelsOff", CLOCK),
    column("Div3TailNum", "VARCHAR(10)"),
    column("Div4Airport", "CHAR(5)"),
    column("Div4WheelsOn", CLOCK),
    column("Div4TotalGTime", MINUTES),
    column("Div4LongestGTime", MINUTES),
    column("Div4WheelsOff", CLOCK),
    column("Div4TailNum", "VARCHAR(10)"),
    column("Div5Airport", "CHAR(5)"),
    column("Div5WheelsOn", CLOCK),
    column("Div5TotalGTime", MINUTES),
    column("Div5LongestGTime", MINUTES),
    column("Div5WheelsOff", CLOCK),
    column("Div5TailNum", "VARCHAR(10)"),
];

/// The primary key and the seven keys of the benchmark's users.
const KEYS: &str = "PRIMARY KEY (id),
    KEY YearMonth (Year, Month),
    KEY YearWeekday (Year, DayOfWeek),
    KEY WeekdayYearDelay (DayOfWeek, Year, DepDelay),
    KEY DestOriginYear (DestCityName, OriginCityName, Year),
    KEY YearDestOrigin (Year, DestCityName, OriginCityName),
    KEY YearCarrierDelay (Year, Carrier, DepDelay),
    KEY OriginYearDelay (Origin, Year, DepDelay)";

/// CREATE TABLE, with the keys and the number that they need, or with nothing but the columns.
pub fn create(with_keys: bool) -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|one| format!("{} {}", one.name, one.sql_type)).collect();
    let columns = columns.join(",\n    ");
    if with_keys {
        let id = "id INT UNSIGNED NOT NULL AUTO_INCREMENT";
        format!("CREATE TABLE ontime (\n    {id},\n    {columns},\n    {KEYS}\n) DEFAULT CHARSET latin1")
    } else {
        format!("CREATE TABLE ontime (\n    {columns}\n) DEFAULT CHARSET latin1")
    }
}

/// All columns, for LOAD DATA into a table that has one more.
pub fn column_list() -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|one| one.name).collect();
    format!("({})", names.join(", "))
}
