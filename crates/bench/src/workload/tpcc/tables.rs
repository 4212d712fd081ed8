//! Rows of the nine tables, as TPC-C (revision 5.11, clause 4.3.3) has them when a run begins.
//!
//! What differs, so that any row can be made without the others: the permutation of customers over a district's
//! orders is an affine map instead of a shuffle; the number of lines of an order comes from a random stream of its
//! own, which `orders` and `order_line` share; all dates are the same moment. Random text is of letters and digits.

use crate::generate::{Fields, Random, Source};

/// Sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Number of warehouses.
    pub warehouses: u64,
    /// Number of items, and so of stock rows for each warehouse; 100,000 by the standard.
    pub items: u64,
    /// Customers, and so orders, of each district; 3,000 by the standard.
    pub customers: u64,
    /// Seed of the streams that two tables share.
    pub seed: u64,
}

/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;
/// Last names.
pub const NAMES: u64 = 1000;
/// The constant of NURand(255) while loading.
const NAME_CONSTANT: u64 = 157;
const LOADED_AT: &[u8] = b"\"2008-06-01 00:00:00\"";

impl Scale {
    /// Districts in all.
    fn districts(&self) -> u64 {
        self.warehouses * DISTRICTS
    }

    /// Of a district's orders those after this one are still to be delivered: the last 900 of 3,000.
    pub fn delivered(&self) -> u64 {
        self.customers * 7 / 10
    }

    /// Last names are taken from the first so many.
    pub fn names(&self) -> u64 {
        self.customers.min(NAMES)
    }

    /// Warehouse, district and number within the district, each from 1.
    fn place(&self, unit: u64) -> (i64, i64, i64) {
        let district = unit / self.customers;
        let number = unit % self.customers;
        ((district / DISTRICTS) as i64 + 1, (district % DISTRICTS) as i64 + 1, number as i64 + 1)
    }

    /// The customer of a district's order: each has one.
    fn customer_of(&self, unit: u64) -> i64 {
        const FACTORS: [u64; 4] = [1223, 1429, 1609, 1];
        // The first prime that does not divide the number makes a permutation; 1 always does.
        let factor =
            FACTORS.into_iter().find(|&factor| factor == 1 || self.customers % factor != 0).unwrap_or(1);
        let (district, number) = (unit / self.customers, unit % self.customers);
        ((number * factor + district * 7919) % self.customers) as i64 + 1
    }

    /// Number of lines of an order: 5 to 15.
    fn lines_of(&self, unit: u64) -> i64 {
        Random::of_block(self.seed, "lines", unit).between(5, 15)
    }
}

/// One of the nine tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What is sold.
    Item,
    /// Where.
    Warehouse,
    /// Ten for each warehouse.
    District,
    /// Who buys.
    Customer,
    /// Payments.
    History,
    /// What is there.
    Stock,
    /// Orders.
    Orders,
    /// Those not yet delivered.
    NewOrder,
    /// Lines of orders.
    OrderLine,
}

/// All tables, in the order in which they are loaded.
pub const KINDS: [Kind; 9] = [
    Kind::Item,
    Kind::Warehouse,
    Kind::District,
    Kind::Customer,
    Kind::History,
    Kind::Stock,
    Kind::Orders,
    Kind::NewOrder,
    Kind::OrderLine,
];

/// The rows of one table at some scale.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Which.
    pub kind: Kind,
    /// How large.
    pub scale: Scale,
}

impl Source for Table {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Item => "item",
            Kind::Warehouse => "warehouse",
            Kind::District => "district",
            Kind::Customer => "customer",
            Kind::History => "history",
            Kind::Stock => "stock",
            Kind::Orders => "orders",
            Kind::NewOrder => "new_order",
            Kind::OrderLine => "order_line",
        }
    }

    fn units(&self) -> u64 {
        match self.kind {
            Kind::Item => self.scale.items,
            Kind::Warehouse => self.scale.warehouses,
            Kind::District => self.scale.districts(),
            Kind::Stock => self.scale.warehouses * self.scale.items,
            _ => self.scale.districts() * self.scale.customers,
        }
    }

    fn block_units(&self) -> u64 {
        1000
    }

    fn fill(&self, unit: u64, random: &mut Random, fields: &mut Fields) {
        match self.kind {
            Kind::Item => item(unit, random, fields),
            Kind::Warehouse => warehouse(unit, random, fields),
            Kind::District => district(self.scale, unit, random, fields),
            Kind::Customer => customer(self.scale, unit, random, fields),
            Kind::History => history(self.scale, unit, random, fields),
            Kind::Stock => stock(self.scale, unit, random, fields),
            Kind::Orders => order(self.scale, unit, random, fields),
            Kind::NewOrder => new_order(self.scale, unit, fields),
            Kind::OrderLine => order_lines(self.scale, unit, random, fields),
        }
    }
}

fn item(unit: u64, random: &mut Random, fields: &mut Fields) {
    fields.int(unit as i64 + 1).int(random.between(1, 10_000));
    text(fields, random, 14, 24);
    fields.decimal(random.between(100, 10_000), 2);
    data(fields, random);
    fields.end();
}

fn warehouse(unit: u64, random: &mut Random, fields: &mut Fields) {
    fields.int(unit as i64 + 1);
    text(fields, random, 6, 10);
    address(fields, random);
    fields.decimal(random.between(0, 2000), 4).decimal(30_000_000, 2).end();
}

fn district(scale: Scale, unit: u64, random: &mut Random, fields: &mut Fields) {
    fields.int((unit % DISTRICTS) as i64 + 1).int((unit / DISTRICTS) as i64 + 1);
    text(fields, random, 6, 10);
    address(fields, random);
    fields.decimal(random.between(0, 2000), 4).decimal(3_000_000, 2).int(scale.customers as i64 + 1).end();
}

fn customer(scale: Scale, unit: u64, random: &mut Random, fields: &mut Fields) {
    let (warehouse, district, number) = scale.place(unit);
    let name = if number as u64 <= NAMES {
        number as u64 - 1
    } else {
        non_uniform(random, 255, NAME_CONSTANT, 0, NAMES - 1)
    };
    fields.int(number).int(district).int(warehouse);
    text(fields, random, 8, 16);
    fields.text(b"OE").text(last_name(name).as_bytes());
    address(fields, random);
    digits(fields, random, 16);
    fields.raw(LOADED_AT).text(if random.chance(1, 10) { b"BC" } else { b"GC" }).decimal(5_000_000, 2);
    fields.decimal(random.between(0, 5000), 4).decimal(-1000, 2).decimal(1000, 2).int(1).int(0);
    text(fields, random, 300, 500);
    fields.end();
}

fn history(scale: Scale, unit: u64, random: &mut Random, fields: &mut Fields) {
    let (warehouse, district, number) = scale.place(unit);
    fields
        .int(number)
        .int(district)
        .int(warehouse)
        .int(district)
        .int(warehouse)
        .raw(LOADED_AT)
        .decimal(1000, 2);
    text(fields, random, 12, 24);
    fields.end();
}

fn stock(scale: Scale, unit: u64, random: &mut Random, fields: &mut Fields) {
    fields
        .int((unit % scale.items) as i64 + 1)
        .int((unit / scale.items) as i64 + 1)
        .int(random.between(10, 100));
    for _ in 0..DISTRICTS {
        text(fields, random, 24, 24);
    }
    fields.int(0).int(0).int(0);
    data(fields, random);
    fields.end();
}

fn order(scale: Scale, unit: u64, random: &mut Random, fields: &mut Fields) {
    let (warehouse, district, number) = scale.place(unit);
    fields.int(number).int(district).int(warehouse).int(scale.customer_of(unit)).raw(LOADED_AT);
    if number as u64 <= scale.delivered() {
        fields.int(random.between(1, 10));
    } else {
        fields.null();
    }
    fields.int(scale.lines_of(unit)).int(1).end();
}

fn new_order(scale: Scale, unit: u64, fields: &mut Fields) {
    let (warehouse, district, number) = scale.place(unit);
    if number as u64 > scale.delivered() {
        fields.int(number).int(district).int(warehouse).end();
    }
}

fn order_lines(scale: Scale, unit: u64, random: &mut Random, fields: &mut Fields) {
    let (warehouse, district, number) = scale.place(unit);
    let delivered = number as u64 <= scale.delivered();
    for line in 1..=scale.lines_of(unit) {
        fields.int(number).int(district).int(warehouse).int(line);
        fields.int(random.between(1, scale.items as i64)).int(warehouse);
        if delivered {
            fields.raw(LOADED_AT).int(5).decimal(0, 2);
        } else {
            fields.null().int(5).decimal(random.between(1, 999_999), 2);
        }
        text(fields, random, 24, 24);
        fields.end();
    }
}

/// NURand of the standard: numbers of which some are much more frequent.
pub fn non_uniform(random: &mut Random, range: u64, constant: u64, low: u64, high: u64) -> u64 {
    let one = random.below(range + 1);
    let other = low + random.below(high - low + 1);
    ((one | other) + constant) % (high - low + 1) + low
}

/// The last name of a number from 0 to 999: a syllable for each digit.
pub fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let syllable = |digit: u64| SYLLABLES[(digit % 10) as usize];
    [syllable(number / 100), syllable(number / 10), syllable(number)].concat()
}

fn push_text(bytes: &mut Vec<u8>, random: &mut Random, length: u64) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789AZ";
    const LETTERS_OF_A_NUMBER: u64 = 10;
    let mut bits = 0;
    for place in 0..length {
        if place % LETTERS_OF_A_NUMBER == 0 {
            bits = random.next();
        }
        bytes.push(LETTERS[(bits & 63) as usize]);
        bits >>= 6;
    }
}

fn text(fields: &mut Fields, random: &mut Random, low: i64, high: i64) {
    let length = random.between(low, high) as u64;
    fields.text_with(|bytes| push_text(bytes, random, length));
}

fn digits(fields: &mut Fields, random: &mut Random, length: usize) {
    fields.text_with(|bytes| {
        crate::generate::fields::push_unsigned(bytes, random.below(10u64.pow(length as u32)), length)
    });
}

/// 26 to 50 letters; one in ten has ORIGINAL somewhere in it.
fn data(fields: &mut Fields, random: &mut Random) {
    const ORIGINAL: &[u8] = b"ORIGINAL";
    let length = random.between(26, 50) as u64;
    let original = random.chance(1, 10).then(|| random.below(length - ORIGINAL.len() as u64) as usize);
    fields.text_with(|bytes| {
        let start = bytes.len();
        push_text(bytes, random, length);
        if let Some(place) = original {
            bytes[start + place..start + place + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
    });
}

/// Two streets, city, state, zip.
fn address(fields: &mut Fields, random: &mut Random) {
    for _ in 0..3 {
        text(fields, random, 10, 20);
    }
    text(fields, random, 2, 2);
    fields.text_with(|bytes| {
        crate::generate::fields::push_unsigned(bytes, random.below(10_000), 4);
        bytes.extend_from_slice(b"11111");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { warehouses: 2, items: 50, customers: 30, seed: 1 };

    fn rows(kind: Kind) -> Vec<Vec<String>> {
        let table = Table { kind, scale: SCALE };
        let mut fields = Fields::default();
        let mut random = Random::new(9);
        (0..table.units()).for_each(|unit| table.fill(unit, &mut random, &mut fields));
        let text = String::from_utf8(fields.bytes().to_vec()).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn tables_have_the_sizes_of_the_standard() {
        let counts = KINDS.map(|kind| rows(kind).len());
        assert_eq!(counts[..8], [50, 2, 20, 600, 600, 100, 600, 180]);
        let lines: usize = rows(Kind::Orders).iter().map(|row| row[6].parse::<usize>().unwrap()).sum();
        assert_eq!(counts[8], lines);
        assert!((600 * 5..=600 * 15).contains(&lines) && lines.abs_diff(6000) < 300, "{lines}");
    }

    #[test]
    fn every_customer_of_a_district_has_one_order() {
        let orders = rows(Kind::Orders);
        for district in 1..=10 {
            let mut customers: Vec<u64> = orders
                .iter()
                .filter(|row| row[2] == "1" && row[1] == district.to_string())
                .map(|row| row[3].parse().unwrap())
                .collect();
            customers.sort_unstable();
            assert_eq!(customers, (1..=30).collect::<Vec<_>>());
        }
    }

    #[test]
    fn names_are_spelled_by_digits_and_frequent_ones_are_frequent() {
        assert_eq!((last_name(0), last_name(371)), ("BARBARBAR".to_owned(), "PRICALLYOUGHT".to_owned()));
        let mut random = Random::new(3);
        let mut counts = vec![0u32; 3000];
        for _ in 0..30_000 {
            counts[non_uniform(&mut random, 1023, 259, 1, 3000) as usize - 1] += 1;
        }
        assert!(counts.iter().max().unwrap() > &60, "the most frequent is much more so than the mean of 10");
    }
}
