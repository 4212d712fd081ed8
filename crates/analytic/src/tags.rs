//! The numbers by which the bytes of a query name things: one list for both sides.
//!
//! `decode.rs` reads them. The C header has the same enums (`PandoTag` and so on), which cbindgen makes of this file, and
//! `mariadb/src/pushdown/select_*.cc` write them; a test of `pando-capi` fails when the header is another. Nobody keeps such bytes,
//! so numbers may change; each enum's go up from 0, without gaps.

/// A list of things that a byte names.
pub(crate) trait Named: Copy + 'static {
    /// All of them, each at its number.
    const ALL: &'static [Self];

    /// What a byte names; `None`: nothing.
    fn of(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// What an expression is: see `Expr`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A column: its number, its kind.
    Slot = 0,
    /// A value, its kind.
    Constant = 1,
    /// An operation on exact numbers, the result's kind, two expressions.
    Arithmetic = 2,
    /// Digits behind the point, two expressions.
    Divide = 3,
    /// An operation on DOUBLEs, two expressions.
    Real = 4,
    /// A comparison, two expressions.
    Compare = 5,
    /// A list of conditions.
    And = 6,
    /// A list of conditions.
    Or = 7,
    /// A condition.
    Not = 8,
    /// An expression.
    IsNull = 9,
    /// A kind, a list of conditions and values, another value.
    Case = 10,
    /// An expression, a list of values.
    In = 11,
    /// The number of a test, a text.
    Test = 12,
    /// The number of a change, a kind, a text.
    Change = 13,
    /// A part of a moment, an expression.
    Part = 14,
    /// A kind, an expression.
    Convert = 15,
    /// An aggregate function, a kind, an expression if there is one.
    Aggregate = 16,
    /// A kind, a query.
    Scalar = 17,
    /// A query.
    Exists = 18,
    /// A list of expressions, a query.
    InQuery = 19,
    /// The number of an expression of the server's, a kind, what it may say, the first such number, a list of expressions.
    Server = 20,
    /// A list of expressions.
    Row = 21,
    /// A window function.
    Window = 22,
    /// A condition, an expression.
    Sure = 23,
    /// An expression, and its values at both ends.
    Near = 24,
    /// Digits behind the point, digits before it, whether it must be the same, a DOUBLE.
    Kept = 25,
    /// The number of a floor, a moment.
    Floor = 26,
    /// The number of a measure, a text.
    Measure = 27,
}

impl Named for Tag {
    const ALL: &'static [Self] = &[
        Tag::Slot,
        Tag::Constant,
        Tag::Arithmetic,
        Tag::Divide,
        Tag::Real,
        Tag::Compare,
        Tag::And,
        Tag::Or,
        Tag::Not,
        Tag::IsNull,
        Tag::Case,
        Tag::In,
        Tag::Test,
        Tag::Change,
        Tag::Part,
        Tag::Convert,
        Tag::Aggregate,
        Tag::Scalar,
        Tag::Exists,
        Tag::InQuery,
        Tag::Server,
        Tag::Row,
        Tag::Window,
        Tag::Sure,
        Tag::Near,
        Tag::Kept,
        Tag::Floor,
        Tag::Measure,
    ];
}

/// What values are: see `Kind`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindTag {
    /// An integer with a sign.
    Signed = 0,
    /// An integer without.
    Unsigned = 1,
    /// A DECIMAL.
    Decimal = 2,
    /// A DOUBLE.
    Real = 3,
    /// A DATE.
    Date = 4,
    /// A DATETIME.
    DateTime = 5,
    /// A TIME.
    Time = 6,
    /// A text.
    Text = 7,
}

impl Named for KindTag {
    const ALL: &'static [Self] = &[
        KindTag::Signed,
        KindTag::Unsigned,
        KindTag::Decimal,
        KindTag::Real,
        KindTag::Date,
        KindTag::DateTime,
        KindTag::Time,
        KindTag::Text,
    ];
}

/// How a constant is written.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueTag {
    /// Nothing follows.
    Null = 0,
    /// A number without its point, of 16 bytes.
    Number = 1,
    /// A DOUBLE, of 8 bytes.
    Real = 2,
    /// How many bytes, and these.
    Text = 3,
}

impl Named for ValueTag {
    const ALL: &'static [Self] = &[ValueTag::Null, ValueTag::Number, ValueTag::Real, ValueTag::Text];
}

/// How two numbers become one.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Their sum.
    Add = 0,
    /// The first without the second.
    Subtract = 1,
    /// Their product.
    Multiply = 2,
}

impl Named for Operation {
    const ALL: &'static [Self] = &[Operation::Add, Operation::Subtract, Operation::Multiply];
}

/// How values compare.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal = 0,
    /// `<>`
    NotEqual = 1,
    /// `<`
    Less = 2,
    /// `<=`
    LessOrEqual = 3,
    /// `>`
    Greater = 4,
    /// `>=`
    GreaterOrEqual = 5,
    /// `<=>`
    Same = 6,
}

impl Named for Comparison {
    const ALL: &'static [Self] = &[
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
        Comparison::Same,
    ];
}

/// A part of a moment.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The year.
    Year = 0,
    /// The month.
    Month = 1,
    /// The day of the month.
    Day = 2,
    /// The quarter of the year.
    Quarter = 3,
    /// The year and the month: 202401.
    YearMonth = 4,
    /// The hour.
    Hour = 5,
    /// The minute.
    Minute = 6,
    /// The second.
    Second = 7,
    /// The DATE.
    Date = 8,
    /// Whether the calendar has it: 1, or 0 (of 2024-00-00, 2024-02-31, and of no year, no month and no day).
    Regular = 9,
    /// Seconds since the year 0; NULL of a moment whose month or day is 0.
    Seconds = 10,
    /// Microseconds since the year 0; NULL likewise.
    Microseconds = 11,
    /// Whether its month has its day: 1, or 0 of 2024-02-31. What has no year, month or day (2024-00-31) has it.
    Possible = 12,
}

impl Named for Part {
    const ALL: &'static [Self] = &[
        Part::Year,
        Part::Month,
        Part::Day,
        Part::Quarter,
        Part::YearMonth,
        Part::Hour,
        Part::Minute,
        Part::Second,
        Part::Date,
        Part::Regular,
        Part::Seconds,
        Part::Microseconds,
        Part::Possible,
    ];
}

/// What is told of the rows of a group.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How many rows.
    Rows = 0,
    /// How many values.
    Count = 1,
    /// Their sum.
    Sum = 2,
    /// The least.
    Min = 3,
    /// The largest.
    Max = 4,
    /// How many different ones.
    CountDistinct = 5,
    /// The sum of the different ones.
    SumDistinct = 6,
    /// The mean of DOUBLEs.
    Mean = 7,
    /// The variance of all.
    Variance = 8,
    /// That of a sample.
    VarianceOfSample = 9,
    /// The standard deviation of all.
    Deviation = 10,
    /// That of a sample.
    DeviationOfSample = 11,
    /// The bits that all have.
    BitAnd = 12,
    /// The bits that one has.
    BitOr = 13,
    /// The bits that an odd number of them have.
    BitXor = 14,
    /// One after the other, as text: see `concat.rs`.
    Concat = 15,
    /// How far the sum of DOUBLEs may lie from the sum in another order: see `rounding.rs`.
    ErrorOfSum = 16,
    /// The same of their mean.
    ErrorOfMean = 17,
}

impl Named for Function {
    const ALL: &'static [Self] = &[
        Function::Rows,
        Function::Count,
        Function::Sum,
        Function::Min,
        Function::Max,
        Function::CountDistinct,
        Function::SumDistinct,
        Function::Mean,
        Function::Variance,
        Function::VarianceOfSample,
        Function::Deviation,
        Function::DeviationOfSample,
        Function::BitAnd,
        Function::BitOr,
        Function::BitXor,
        Function::Concat,
        Function::ErrorOfSum,
        Function::ErrorOfMean,
    ];
}

/// What is told of the rows around each row.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    /// Its number in the partition.
    RowNumber = 0,
    /// How many rows come before it and its peers, and one.
    Rank = 1,
    /// The number of its peers among the peers of the partition.
    DenseRank = 2,
    /// The number of its part, of so many parts that are as large as each other.
    Tile = 3,
    /// How many of the other rows come before it and its peers.
    PercentRank = 4,
    /// How many of the rows are not behind it.
    Distribution = 5,
    /// The value so many rows before.
    Lag = 6,
    /// The value so many rows behind.
    Lead = 7,
    /// The first value of the frame.
    First = 8,
    /// The last one.
    Last = 9,
    /// The one with this number.
    Nth = 10,
    /// How many rows the frame has.
    Rows = 11,
    /// How many values.
    Count = 12,
    /// Their sum.
    Sum = 13,
    /// The least.
    Min = 14,
    /// The largest.
    Max = 15,
    /// The mean of DOUBLEs.
    Mean = 16,
}

impl Named for WindowFunction {
    const ALL: &'static [Self] = &[
        WindowFunction::RowNumber,
        WindowFunction::Rank,
        WindowFunction::DenseRank,
        WindowFunction::Tile,
        WindowFunction::PercentRank,
        WindowFunction::Distribution,
        WindowFunction::Lag,
        WindowFunction::Lead,
        WindowFunction::First,
        WindowFunction::Last,
        WindowFunction::Nth,
        WindowFunction::Rows,
        WindowFunction::Count,
        WindowFunction::Sum,
        WindowFunction::Min,
        WindowFunction::Max,
        WindowFunction::Mean,
    ];
}

/// Where a window's frame begins or ends: see `Bound`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundTag {
    /// With the partition.
    Unbounded = 0,
    /// At the row, or its peers.
    Current = 1,
    /// A number before.
    Preceding = 2,
    /// A number behind.
    Following = 3,
}

impl Named for BoundTag {
    const ALL: &'static [Self] =
        &[BoundTag::Unbounded, BoundTag::Current, BoundTag::Preceding, BoundTag::Following];
}

/// What a part of FROM is: see `Source`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTag {
    /// A table.
    Table = 0,
    /// A query.
    Query = 1,
    /// Some, joined.
    Nest = 2,
}

impl Named for SourceTag {
    const ALL: &'static [Self] = &[SourceTag::Table, SourceTag::Query, SourceTag::Nest];
}

/// How rows of a query are taken together with those before it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// All of both.
    Union = 0,
    /// Those before it that it has not.
    Except = 1,
    /// Those before it that it has.
    Intersect = 2,
}

impl Named for SetOperation {
    const ALL: &'static [Self] = &[SetOperation::Union, SetOperation::Except, SetOperation::Intersect];
}

/// What the server's code may say of some rows of an expression, and not of others: where the plan decides of which rows it is computed.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saying {
    /// Nothing that the plan decides.
    Nothing = 0,
    /// Warnings.
    Warnings = 1,
    /// Also errors, which end a query of the server's.
    Errors = 2,
    /// Warnings, of parts that can be asked of all rows instead (a text that becomes a number).
    OfParts = 3,
}

impl Named for Saying {
    const ALL: &'static [Self] = &[Saying::Nothing, Saying::Warnings, Saying::Errors, Saying::OfParts];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_at_their_numbers<T: Named>(number: impl Fn(T) -> u8) {
        let numbers = T::ALL.iter().map(|one| usize::from(number(*one)));
        assert!(numbers.eq(0..T::ALL.len()));
        assert!(T::of(T::ALL.len() as u8).is_none());
    }

    #[test]
    fn each_thing_stands_at_its_number() {
        are_at_their_numbers(|one: Tag| one as u8);
        are_at_their_numbers(|one: KindTag| one as u8);
        are_at_their_numbers(|one: ValueTag| one as u8);
        are_at_their_numbers(|one: Operation| one as u8);
        are_at_their_numbers(|one: Comparison| one as u8);
        are_at_their_numbers(|one: Part| one as u8);
        are_at_their_numbers(|one: Function| one as u8);
        are_at_their_numbers(|one: WindowFunction| one as u8);
        are_at_their_numbers(|one: BoundTag| one as u8);
        are_at_their_numbers(|one: SourceTag| one as u8);
        are_at_their_numbers(|one: SetOperation| one as u8);
        are_at_their_numbers(|one: Saying| one as u8);
    }
}
