//! Days as numbers (0 is 1970-01-01) and back, in the Gregorian calendar.

/// Year, month, day of a day's number.
pub fn date_of(day: i64) -> (u32, u32, u32) {
    // Days from 0000-03-01, in eras of 400 years; a year that begins in March has its leap day at the end.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as u32, month as u32, (of_year - (153 * march_month + 2) / 5 + 1) as u32)
}

/// The number of a day.
pub fn day_of(year: u32, month: u32, day: u32) -> i64 {
    let shifted_year = i64::from(year) - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let march_month = i64::from((month + 9) % 12);
    let of_year = (153 * march_month + 2) / 5 + i64::from(day) - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// 1 is Monday, 7 Sunday, as in the air-traffic data.
pub fn weekday_of(day: i64) -> u32 {
    ((day + 3).rem_euclid(7) + 1) as u32
}

/// Number of days of a month.
pub fn days_of_month(year: u32, month: u32) -> u32 {
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    (day_of(next_year, next_month, 1) - day_of(year, month, 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!((date_of(0), weekday_of(0)), ((1970, 1, 1), 4));
        assert_eq!(day_of(2000, 3, 1) - day_of(2000, 2, 28), 2);
        assert_eq!(day_of(1900, 3, 1) - day_of(1900, 2, 28), 1);
        // A Thursday, as the flights' source has it.
        assert_eq!(weekday_of(day_of(2008, 4, 3)), 4);
        assert_eq!((days_of_month(2008, 2), days_of_month(2009, 2), days_of_month(1999, 12)), (29, 28, 31));
    }

    #[test]
    fn there_and_back_is_the_same_day_for_two_centuries() {
        for day in day_of(1900, 1, 1)..day_of(2100, 1, 1) {
            let (year, month, of_month) = date_of(day);
            assert_eq!(day_of(year, month, of_month), day);
        }
    }
}
