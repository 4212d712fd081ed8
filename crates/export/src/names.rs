//! Names of databases and tables, and what the server calls their files.
//!
//! On the disk a name has letters and digits of ASCII and `_` only. Anything else is `@` and what stands for it: two characters for letters
//! of the Latin, Greek, Cyrillic and Armenian scripts and some others (`ö` is `@1i`), four hexadecimal digits for the rest of the Basic
//! Multilingual Plane (`-` is `@002d`). Names have no other characters. [`SHORT`] has the first ones,
//! as `CONVERT(name USING filename)` gives them.
//!
//! Names are written in backquotes where they have dots, slashes or commas, as in SQL ([`readings`]).

/// Names that are devices on Windows. The server marks them everywhere.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// What it puts behind them.
const DEVICE_MARK: &str = "@@@";
/// Before the name of a file that is of no name: what follows is the file's.
const FILE_PREFIX: &str = "#mysql50#";

const NO_LETTER: &str = "--";
/// Code points with two characters: sixteen from each first one on.
#[rustfmt::skip]
const SHORT: [(u16, &str); 104] = [
    (0x00c0, "0G0H0I0J0K0L0M0N0O0P0Q0R0S0T0U0V"),
    (0x00d0, "0W0X0Y0Z1G1H1I--1K1L1M1N1O1P1Q1j"),
    (0x00e0, "0g0h0i0j0k0l0m0n0o0p0q0r0s0t0u0v"),
    (0x00f0, "0w0x0y0z1g1h1i--1k1l1m1n1o1p1q1r"),
    (0x0100, "1S1s1T1t1U1u1V1v1W1w1X1x1Y1y1Z1z"),
    (0x0110, "2G2g2H2h2I2i2J2j2K2k2L2l2M2m2N2n"),
    (0x0120, "2O2o2P2p2Q2q2R2r2S2s2T2t2U2u2V2v"),
    (0x0130, "--2w2X2x2Y2y2Z2z3g3H3h3I3i3J3j3K"),
    (0x0140, "3k3L3l3M3m3N3n3O3o3p3Q3q3R3r3S3s"),
    (0x0150, "3T3t3U3u3V3v3W3w3X3x3Y3y3Z3z4G4g"),
    (0x0160, "4H4h4I4i4J4j4K4k4L4l4M4m4N4n4O4o"),
    (0x0170, "4P4p4Q4q4R4r4S4s1R4T4t4U4u4V4v4w"),
    (0x0180, "gaQfHahaIaiaRfJajaTfUfKakalaZbWf"),
    (0x0190, "YfMamaJgMgnaSgRgOaoapaqaYgHhraKh"),
    (0x01a0, "SasaTataUauaVhVavaYhwaxaYayaJiZa"),
    (0x01b0, "zaLiMiGbgbHbhbTiIbibjbkbNbnbmb--"),
    (0x01c0, "--------Ob--obPb--pbQb--qbRbrbSb"),
    (0x01d0, "sbTbtbUbubVbvbWbwbXbxbYbybzbGcgc"),
    (0x01e0, "HchcIcicJcjcKckcLclcMcmcNcncOcoc"),
    (0x01f0, "pcQc--qcRcrcNa--ScscTctcUcucVcvc"),
    (0x0200, "WcwcXcxcYcycZczcGdgdHdhdIdidJdjd"),
    (0x0210, "KdkdLdldMdmdNdndOdodPdpdQdqdRdrd"),
    (0x0220, "RasdTdtdUdudVdvdWdwdXdxdYdydZdzd"),
    (0x0230, "GegeHeheiejekelemeneOePepePaQere"),
    (0x0240, "seVi----------------------------"),
    (0x0250, "nfofpfqfrfsftfufvfwfxfyfzfgghgig"),
    (0x0260, "jgkglgmgngogpgqgrgsgtgugvgwgxgyg"),
    (0x0270, "zgghhhihjhkhlhmhnhohphqhrhshthuh"),
    (0x0280, "vhwhxhyhzhgihiiijikiliminioipiqi"),
    (0x0290, "risitiuiviwixiyizigjhjijjjkjljmj"),
    (0x02a0, "njojpjqjrjsjtjujvjwjxjyjzjgkhkik"),
    (0x0380, "------------6G--6H6I6J--7S--7T7U"),
    (0x0390, "5y6L7W6N6O6P6Q6R7X6T8W6V6W6X6Y6Z"),
    (0x03a0, "8I7H--8Y7K7L8H7N7O7P7Q7R6g6h6i6j"),
    (0x03b0, "6k6l6m6n6o6p6q6r6s6t6u6v6w6x6y6z"),
    (0x03c0, "7g7h7i7j7k7l7m7n7o7p7q7r7s7t7u--"),
    (0x03d0, "7w7x7Y7Z8G8h8i8j--8k8L8l8M8m8N8n"),
    (0x03e0, "8O8o8P8p8Q8q8R8r8S8s8T8t8U8u8V8v"),
    (0x03f0, "8w8x8y8z--9g9h--9i----9j9k9L9M9N"),
    (0x0400, "S1T1U1V1W1X1Y1Z1G2H2I2J2K2L2M2N2"),
    (0x0410, "G0H0I0J0K0L0M0N0O0P0Q0R0S0T0U0V0"),
    (0x0420, "W0X0Y0Z0G1H1I1J1K1L1M1N1O1P1Q1R1"),
    (0x0430, "g0h0i0j0k0l0m0n0o0p0q0r0s0t0u0v0"),
    (0x0440, "w0x0y0z0g1h1i1j1k1l1m1n1o1p1q1r1"),
    (0x0450, "s1t1u1v1w1x1y1z1g2h2i2j2k2l2m2n2"),
    (0x0460, "O2o2P2p2Q2q2R2r2S2s2T2t2U2u2V2v2"),
    (0x0470, "W2w2X2x2Y2y2Z2z2G3g3H3h3I3i3J3j3"),
    (0x0480, "K3k3----------------M3m3N3n3O3o3"),
    (0x0490, "P3p3Q3q3R3r3S3s3T3t3U3u3V3v3W3w3"),
    (0x04a0, "X3x3Y3y3Z3z3G4g4H4h4I4i4J4j4K4k4"),
    (0x04b0, "L4l4M4m4N4n4O4o4P4p4Q4q4R4r4S4s4"),
    (0x04c0, "T4U4u4V4v4W4w4X4x4Y4y4Z4z4G5g5--"),
    (0x04d0, "I5i5J5j5K5k5L5l5M5m5N5n5O5o5P5p5"),
    (0x04e0, "Q5q5R5r5S5s5T5t5U5u5V5v5W5w5X5x5"),
    (0x04f0, "Y5y5Z5z5G6g6H6h6I6i6------------"),
    (0x0500, "P6p6Q6q6R6r6S6s6T6t6U6u6V6v6W6w6"),
    (0x0530, "--H7I7J7K7L7M7N7O7P7Q7R7S7T7U7V7"),
    (0x0540, "W7X7Y7Z7G8H8I8J8K8L8M8N8O8P8Q8R8"),
    (0x0550, "S8T8U8V8W8X8--------------------"),
    (0x0560, "--h7i7j7k7l7m7n7o7p7q7r7s7t7u7v7"),
    (0x0570, "w7x7y7z7g8h8i8j8k8l8m8n8o8p8q8r8"),
    (0x0580, "s8t8u8v8w8x8--------------------"),
    (0x1e00, "GlglHlhlIlilJljlKlklLlllMlmlNlnl"),
    (0x1e10, "OlolPlplQlqlRlrlSlslTltlUlulVlvl"),
    (0x1e20, "WlwlXlxlYlylZlzlGmgmHmhmImimJmjm"),
    (0x1e30, "KmkmLmlmMmmmNmnmOmomPmpmQmqmRmrm"),
    (0x1e40, "SmsmTmtmUmumVmvmWmwmXmxmYmymZmzm"),
    (0x1e50, "GngnHnhnIninJnjnKnknLnlnMnmnNnnn"),
    (0x1e60, "GponPnpnQnqnRnrnSnsnTntnUnunVnvn"),
    (0x1e70, "WnwnXnxnYnynZnznGogoHohoIoioJojo"),
    (0x1e80, "KokoLoloMomoNonoOoooPopoQoqoRoro"),
    (0x1e90, "SosoTotoUouovowoxoyozogp--------"),
    (0x1ea0, "LplpMpmpNpnpOpopPpppQpqpRprpSpsp"),
    (0x1eb0, "TptpUpupVpvpWpwpXpxpYpypZpzpGqgq"),
    (0x1ec0, "HqhqIqiqJqjqKqkqLqlqMqmqNqnqOqoq"),
    (0x1ed0, "PqpqQqqqRqrqSqsqTqtqUquqVqvqWqwq"),
    (0x1ee0, "XqxqYqyqZqzqGrgrHrhrIrirJrjrKrkr"),
    (0x1ef0, "LrlrMrmrNrnrOrorPrpr------------"),
    (0x1f00, "gshsisjskslsmsnsGsHsIsJsKsLsMsNs"),
    (0x1f10, "ospsqsrsssts----OsPsQsRsSsTs----"),
    (0x1f20, "yszsgthtitjtktltYsZsGtHtItJtKtLt"),
    (0x1f30, "mtntotptqtrtstttMtNtOtPtQtRtStTt"),
    (0x1f40, "utvtwtxtytzt----UtVtWtXtYtZt----"),
    (0x1f50, "kulumunuoupuquru--Lu--Nu--Pu--Ru"),
    (0x1f60, "wuxuyuzugvhvivjvWuXuYuZuGvHvIvJv"),
    (0x1f70, "kvlvmvnvovpvqvrvsvtvuvvvwvxv----"),
    (0x1f80, "gwhwiwjwkwlwmwnwGwHwIwJwKwLwMwNw"),
    (0x1f90, "owpwqwrwswtwuwvwOwPwQwRwSwTwUwVw"),
    (0x1fa0, "wwxwywzwgxhxixjxWwXwYwZwGxHxIxJx"),
    (0x1fb0, "kxlxmxnxox--qxrxKxLxKvLvNx------"),
    (0x1fc0, "----sxtxux--wxxxMvNvOvPvTx------"),
    (0x1fd0, "yxzxgyhy----kylyYxZxQvRv--------"),
    (0x1fe0, "nyoypyqyrysytyuyNyOyUvVvSy------"),
    (0x1ff0, "----xyyy----hzizSvTvWvXvYy------"),
    (0x2160, "G9H9I9J9K9L9M9N9O9P9Q9R9S9T9U9V9"),
    (0x2170, "g9h9i9j9k9l9m9n9o9p9q9r9s9t9u9v9"),
    (0x24b0, "------------@A@B@C@D@E@F@G@H@I@J"),
    (0x24c0, "@K@L@M@N@O@P@Q@R@S@T@U@V@W@X@Y@Z"),
    (0x24d0, "@a@b@c@d@e@f@g@h@i@j@k@l@m@n@o@p"),
    (0x24e0, "@q@r@s@t@u@v@w@x@y@z------------"),
    (0xff20, "--A@B@C@D@E@F@G@H@I@J@K@L@M@N@O@"),
    (0xff30, "P@Q@R@S@T@U@V@W@X@Y@Z@----------"),
    (0xff40, "--a@b@c@d@e@f@g@h@i@j@k@l@m@n@o@"),
    (0xff50, "p@q@r@s@t@u@v@w@x@y@z@----------"),
];

fn short(c: char) -> Option<&'static str> {
    let code = u16::try_from(u32::from(c)).ok()?;
    let row = SHORT.binary_search_by_key(&(code & 0xfff0), |(first, _)| *first).ok()?;
    let at = usize::from(code & 15) * 2;
    let (_, cells) = SHORT.get(row)?;
    cells.get(at..at + 2).filter(|cell| *cell != NO_LETTER)
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A name as the server's files have it. `None`: the server has no such names.
pub fn file_name(name: &str) -> Option<String> {
    if let Some(file) = name.strip_prefix(FILE_PREFIX) {
        let is_one = !file.is_empty() && !file.contains(['/', '\\', '~', '.', '\0']);
        return is_one.then(|| file.to_owned());
    }
    if name.is_empty() || name.ends_with(' ') {
        return None;
    }
    let mut file = String::new();
    for c in name.chars() {
        match (u32::from(c), short(c)) {
            (0 | 0x1_0000.., _) => return None,
            (_, _) if is_safe(c) => file.push(c),
            (_, Some(cell)) => file.extend(["@", cell]),
            (code, None) => file += &format!("@{code:04x}"),
        }
    }
    Some(marked(file))
}

/// The name of a file, with the mark that the server puts behind those of devices.
pub fn marked(mut file: String) -> String {
    let small = file.to_ascii_lowercase();
    let port = small.strip_prefix("com").or(small.strip_prefix("lpt"));
    if DEVICES.contains(&small.as_str()) || matches!(port.map(str::as_bytes), Some([b'1'..=b'9'])) {
        file.push_str(DEVICE_MARK);
    }
    file
}

/// The name that a file is called after. What is of no name is given with the prefix that the server has for it.
pub fn name_of(file: &str) -> String {
    decoded(file).unwrap_or_else(|| format!("{FILE_PREFIX}{file}"))
}

fn decoded(file: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = file.strip_suffix(DEVICE_MARK).unwrap_or(file);
    while let Some(c) = rest.chars().next() {
        let mut taken = 1;
        if is_safe(c) {
            name.push(c);
        } else if c != '@' {
            return None;
        } else if let Some(c) = rest.get(1..3).and_then(letter) {
            name.push(c);
            taken = 3;
        } else {
            let digits = rest.get(1..5)?;
            let is_code = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            name.push(char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| is_code)?)?);
            taken = 5;
        }
        rest = rest.get(taken..)?;
    }
    // Other spellings than the server's are of no name.
    (file_name(&name).as_deref() == Some(file)).then_some(name)
}

/// What two characters stand for.
fn letter(cell: &str) -> Option<char> {
    SHORT.iter().find_map(|(first, cells)| {
        let at = cells.as_bytes().chunks_exact(2).position(|its| its == cell.as_bytes())?;
        char::from_u32(u32::from(*first) + at as u32).filter(|_| cell != NO_LETTER)
    })
}

/// The parts between separators that are not in backquotes.
pub fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let (mut parts, mut begin, mut is_quoted) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        if character == '`' {
            is_quoted = !is_quoted;
        } else if separators.contains(&character) && !is_quoted {
            parts.push(&text[begin..at]);
            begin = at + 1;
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// A name without its backquotes, if it has any. `None`: it is empty, or its quotes do not fit.
pub fn unquoted(text: &str) -> Option<String> {
    let name = match text.strip_prefix('`') {
        None => text.to_owned(),
        Some(rest) => {
            let within = rest.strip_suffix('`')?.replace("``", "\0");
            if within.contains('`') {
                return None;
            }
            within.replace('\0', "`")
        }
    };
    (!name.is_empty()).then_some(name)
}

/// How `DATABASE.TABLE` can be read: without quotes, each separator may be the one between them. The parts are as they are written.
pub fn halves<'a>(name: &'a str, separators: &[char]) -> Vec<(&'a str, &'a str)> {
    let mut ends: Vec<usize> = Vec::new();
    for part in split(name, separators) {
        ends.push(ends.last().map_or(0, |end| end + 1) + part.len());
    }
    ends.pop();
    ends.into_iter().map(|end| (&name[..end], &name[end + 1..])).collect()
}

/// The same, without quotes.
pub fn readings(name: &str, separators: &[char]) -> Vec<(String, String)> {
    let halves = halves(name, separators).into_iter();
    halves.filter_map(|(database, table)| Some((unquoted(database)?, unquoted(table)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the server: `SELECT CONVERT(CONVERT(name USING filename) USING binary)`, and what lies in its data directory.
    const FILES: [(&str, &str); 46] = [
        ("t_1Z", "t_1Z"),
        ("föö", "f@1i@1i"),
        ("ü", "@1o"),
        ("É", "@0P"),
        ("×÷", "@00d7@00f7"),
        ("ÿŸ", "@1r@1R"),
        ("İı", "@0130@2w"),
        ("Ǆǅǆ", "@Ob@01c5@ob"),
        ("таблица", "@y0@g0@h0@r0@o0@i1@g0"),
        ("Ёё", "@T1@t1"),
        ("πίναξ", "@7g@6j@6x@6l@6y"),
        ("Ωϙ", "@7P@8k"),
        ("ՀՑ", "@W7@T8"),
        ("Việt", "Vi@kqt"),
        ("ở", "@wq"),
        ("ᾼῼ", "@Nx@Yy"),
        ("Ⅻⅿ", "@R9@v9"),
        ("ⓐⓏ", "@@a@@Z"),
        ("Ａｚ", "@A@@z@"),
        ("表", "@8868"),
        ("ア", "@30a2"),
        ("한", "@d55c"),
        ("שלום", "@05e9@05dc@05d5@05dd"),
        ("ก", "@0e01"),
        ("\u{feff}\u{ffff}", "@feff@ffff"),
        ("a-b", "a@002db"),
        ("a b", "a@0020b"),
        ("a.b", "a@002eb"),
        (".", "@002e"),
        ("..", "@002e@002e"),
        ("../x", "@002e@002e@002fx"),
        ("a/b", "a@002fb"),
        ("a\\b", "a@005cb"),
        ("a`b", "a@0060b"),
        ("a'\"b", "a@0027@0022b"),
        (" a", "@0020a"),
        ("$a", "@0024a"),
        ("a@b", "a@0040b"),
        ("a@002db", "a@0040002db"),
        ("t#P#p0", "t@0023P@0023p0"),
        ("#sql-1", "@0023sql@002d1"),
        ("\u{1}\t\n", "@0001@0009@000a"),
        ("con", "con@@@"),
        ("Lpt9", "Lpt9@@@"),
        ("com0", "com0"),
        ("clock$", "clock@0024"),
    ];

    #[test]
    fn names_are_written_as_the_server_writes_them_and_read_back() {
        for (name, file) in FILES {
            assert_eq!(file_name(name).as_deref(), Some(file), "{name}");
            assert_eq!(name_of(file), name);
        }
    }

    #[test]
    fn every_code_point_has_a_spelling_of_its_own() {
        let mut spellings = std::collections::HashSet::new();
        for c in (1..=0xffff).filter_map(char::from_u32) {
            let name = format!("a{c}z");
            let file = file_name(&name).unwrap();
            assert!(file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@".contains(&byte)), "{file}");
            if short(c).is_some() || u32::from(c) % 64 == 0 {
                assert_eq!(name_of(&file), name);
            }
            assert!(spellings.insert(file), "{name}");
        }
        let rows = SHORT.iter().map(|(first, cells)| (*first, cells.len()));
        assert!(rows.clone().all(|(first, len)| first % 16 == 0 && len == 32));
        assert!(rows.clone().zip(rows.skip(1)).all(|(one, next)| one.0 < next.0));
    }

    #[test]
    fn some_files_are_of_no_name_and_some_names_have_no_file() {
        for file in ["a-b", "a@", "a@0", "a@002D", "a@0041", "a@d800", "a@@@", "con", "t#P#p0", "ö", ""] {
            assert_eq!(name_of(file), format!("#mysql50#{file}"));
        }
        assert_eq!(file_name("#mysql50#a-b@").as_deref(), Some("a-b@"));
        for name in ["", "a ", "😀", "a\0", "#mysql50#", "#mysql50#../x", "#mysql50#a.b"] {
            assert_eq!(file_name(name), None, "{name:?}");
        }
    }

    fn pair(database: &str, table: &str) -> (String, String) {
        (database.to_owned(), table.to_owned())
    }

    #[test]
    fn every_dot_outside_of_backquotes_may_be_the_one_between_database_and_table() {
        let readings = |name| readings(name, &['.']);
        assert_eq!(readings("my-db.t"), [pair("my-db", "t")]);
        assert_eq!(readings("a.b.c"), [pair("a", "b.c"), pair("a.b", "c")]);
        assert_eq!(readings("`a.b`.`c``d.`"), [pair("a.b", "c`d.")]);
        assert_eq!(readings("`a.b`.c"), [pair("a.b", "c")]);
        for nothing in ["a", "", ".", "a.", ".a", "`a.b`", "`a`b.`c`"] {
            assert_eq!(readings(nothing), [], "{nothing}");
        }
        assert_eq!(super::readings("a.b/c", &['/', '.']), [pair("a", "b/c"), pair("a.b", "c")]);
    }
}
