//! Character sets: which one a collation is of, and texts in it as UTF-8.
#![deny(clippy::indexing_slicing)]

/// The number of a collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collation(pub u16);

/// How the characters of a text are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Bytes, no characters.
    Binary,
    /// utf8mb3, utf8mb4.
    Utf8,
    /// latin1, which is Windows' code page 1252.
    Latin1,
    /// ascii.
    Ascii,
    /// ucs2, utf16.
    Utf16,
    /// utf16le.
    Utf16Le,
    /// utf32.
    Utf32,
    /// Another one of one byte a character.
    Single,
    /// Another one.
    Other,
}

/// Where Windows' code page 1252 differs from ISO 8859-1: 0x80 to 0x9f; 0: as there.
const LATIN1_HIGH: [u16; 32] = [
    0x20ac, 0, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0, 0x17d,
    0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0,
    0x17e, 0x178,
];

/// Collations from here on are those of the version without PAD of the ones 1024 below.
const NO_PAD: u16 = 1024;
/// Collations from here on are of UCA 14.0.0: 256 of each character set.
const UCA1400: u16 = 2048;

impl Collation {
    /// Of bytes.
    pub const BINARY: Collation = Collation(63);

    /// The character set.
    pub fn charset(self) -> Charset {
        if self.0 >= UCA1400 {
            return match (self.0 - UCA1400) / 256 {
                0 | 1 => Charset::Utf8,
                2 | 3 => Charset::Utf16,
                4 => Charset::Utf32,
                _ => Charset::Other,
            };
        }
        match self.base() {
            63 => Charset::Binary,
            33 | 45 | 46 | 76 | 83 | 192..=215 | 223..=247 | 576..=578 | 608..=610 => Charset::Utf8,
            5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => Charset::Latin1,
            11 | 65 => Charset::Ascii,
            35 | 54 | 55 | 90 | 101..=124 | 128..=151 | 159 | 640..=642 | 672..=674 => Charset::Utf16,
            56 | 62 => Charset::Utf16Le,
            60 | 61 | 160..=183 | 736..=738 => Charset::Utf32,
            1 | 12 | 13 | 19 | 24 | 28 | 84..=88 | 91 | 95..=98 => Charset::Other,
            _ => Charset::Single,
        }
    }

    fn base(self) -> u16 {
        match self.0 {
            NO_PAD..UCA1400 => self.0 - NO_PAD,
            id => id,
        }
    }

    /// The order of keys is that of the bytes of texts.
    pub fn compares_bytes(self) -> bool {
        let is_bin = matches!(
            self.base(),
            43 | 46 | 47 | 50 | 53 | 55 | 58 | 61 | 62 | 64..=75 | 77..=91 | 93 | 96 | 98
        );
        let has_it =
            matches!(self.charset(), Charset::Utf8 | Charset::Latin1 | Charset::Ascii | Charset::Single);
        self.0 == Self::BINARY.0 || (self.0 < UCA1400 && is_bin && has_it)
    }

    /// Texts are compared as if spaces followed without end.
    pub fn pads(self) -> bool {
        match self.0 {
            63 => false,
            0..NO_PAD => true,
            NO_PAD..UCA1400 => false,
            id => id & 4 == 0,
        }
    }

    /// In keys, texts have a weight of one byte for each byte.
    pub fn has_byte_weights(self) -> bool {
        self.compares_bytes() || matches!(self.charset(), Charset::Latin1 | Charset::Ascii | Charset::Single)
    }
}

impl Charset {
    /// A text as UTF-8; `None`: it is not one, or the character set is not known.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Charset::Utf8 => String::from_utf8(bytes.to_vec()).ok(),
            Charset::Ascii => bytes.is_ascii().then(|| bytes.iter().map(|byte| char::from(*byte)).collect()),
            Charset::Latin1 => Some(bytes.iter().map(|byte| latin1(*byte)).collect()),
            Charset::Utf16 => {
                let units = bytes.chunks(2).map(|pair| Some(u16::from_be_bytes(pair.try_into().ok()?)));
                utf16(units)
            }
            Charset::Utf16Le => {
                let units = bytes.chunks(2).map(|pair| Some(u16::from_le_bytes(pair.try_into().ok()?)));
                utf16(units)
            }
            Charset::Utf32 => {
                let code = |four: &[u8]| char::from_u32(u32::from_be_bytes(four.try_into().ok()?));
                bytes.chunks(4).map(code).collect()
            }
            Charset::Binary | Charset::Single | Charset::Other => None,
        }
    }
}

fn utf16(units: impl Iterator<Item = Option<u16>>) -> Option<String> {
    let units: Option<Vec<u16>> = units.collect();
    String::from_utf16(&units?).ok()
}

fn latin1(byte: u8) -> char {
    let high = byte.checked_sub(0x80).and_then(|at| LATIN1_HIGH.get(usize::from(at)));
    let code = high.copied().filter(|code| *code != 0).unwrap_or(u16::from(byte));
    char::from_u32(u32::from(code)).unwrap_or(char::REPLACEMENT_CHARACTER)
}
