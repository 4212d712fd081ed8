//! `pando convert-dump`: a dump of other engines' tables, as `mysqldump` and `mariadb-dump` write it, made one of Pando's.
//!
//! Only statements that define tables change; rows pass as they are, whatever they contain. A dump has a statement's begin at
//! the begin of a line, and no line breaks within strings (they are written as `\n`), so lines are enough to find statements, and
//! tokens to change them: what stands in quotes is never taken for a keyword.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

/// What is to become of a dump.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Engines whose tables are converted, as they are written in `ENGINE=`.
    pub from: Vec<String>,
    /// The engine that they get.
    pub to: String,
    /// What is written without effect is noted, too.
    pub notes_all: bool,
}

/// What has become of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Tables that have another engine now.
    pub tables: usize,
    /// What behaves otherwise, each with its table, in the order of the dump.
    pub notes: Vec<String>,
}

/// One piece of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// Letters, digits, `_` and `$`.
    Word(&'a [u8]),
    /// With its quotes: `'`, `"` or a backtick.
    Quoted(&'a [u8]),
    /// Blanks.
    Space(&'a [u8]),
    /// Any other character.
    Other(&'a [u8]),
}

impl<'a> Token<'a> {
    fn bytes(&self) -> &'a [u8] {
        match *self {
            Token::Word(bytes) | Token::Quoted(bytes) | Token::Space(bytes) | Token::Other(bytes) => bytes,
        }
    }

    /// A keyword, or the name of an option, in small letters.
    fn name(&self) -> Option<String> {
        match *self {
            Token::Word(bytes) => Some(small(bytes)),
            Token::Quoted([b'`', name @ .., b'`']) => Some(small(name)),
            _ => None,
        }
    }

    fn value(&self) -> Option<String> {
        match *self {
            Token::Word(bytes) => Some(small(bytes)),
            Token::Quoted([_, inner @ .., _]) => Some(small(inner)),
            _ => None,
        }
    }
}

fn small(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_ascii_lowercase()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn tokens<'a>(line: &'a [u8]) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(&first) = rest.first() {
        let run = |is_in: fn(u8) -> bool| rest.iter().position(|&b| !is_in(b)).unwrap_or(rest.len());
        let (len, token): (usize, fn(&'a [u8]) -> Token<'a>) = match first {
            b'\'' | b'"' | b'`' => (quoted_len(rest, first), Token::Quoted),
            b if is_word(b) => (run(is_word), Token::Word),
            b if b.is_ascii_whitespace() => (run(|b| b.is_ascii_whitespace()), Token::Space),
            _ => (1, Token::Other),
        };
        let (bytes, behind) = rest.split_at(len);
        found.push(token(bytes));
        rest = behind;
    }
    found
}

/// A doubled quote, and outside of names an escaped one, is a part of the text. What has no end goes to the end of the line.
fn quoted_len(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        if text[at] == b'\\' && quote != b'`' {
            at += 2;
        } else if text[at] == quote {
            if text.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Position behind blanks and at most one `=`, where the value of an option stands.
fn value_at(tokens: &[Token<'_>], name: usize) -> Option<(usize, String)> {
    let mut at = name + 1;
    let mut equals = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            Token::Space(_) => {}
            Token::Other(b"=") if equals == 0 => equals += 1,
            token => return token.value().map(|value| (at, value)),
        }
        at += 1;
    }
    None
}

/// The options of Pando for one of TokuDB's compressions (`tokudb_zlib` and so on).
fn compression_of(tokudb: &str) -> Option<&'static str> {
    Some(match tokudb.strip_prefix("tokudb_")? {
        "uncompressed" => "COMPRESSION=NONE",
        "quicklz" | "fast" | "snappy" => "COMPRESSION=LZ4",
        "lzma" | "small" => "COMPRESSION=ZSTD COMPRESSION_LEVEL=9",
        _ => "COMPRESSION=ZSTD",
    })
}

/// Options of other engines that would be refused, and what is lost with them.
const DROPPED_OPTIONS: [(&str, &str); 3] = [
    ("page_compressed", "compresses all tables anyway"),
    ("page_compression_level", "compresses all tables anyway"),
    ("tokudb_read_free_rpl", "has no such option"),
];

/// A statement that defines a table, while it is converted.
struct Definition<'a> {
    conversion: &'a Conversion,
    table: String,
    notes: BTreeSet<(usize, String)>,
}

impl Definition<'_> {
    fn note(&mut self, text: String) {
        let place = self.notes.len();
        if !self.notes.iter().any(|(_, said)| *said == text) {
            self.notes.insert((place, text));
        }
    }

    /// The line, or nothing where it is left out.
    fn line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let tokens = tokens(line);
        let mut words = tokens.iter().filter(|token| !matches!(token, Token::Space(_)));
        if let (Some(Token::Word(kind)), Some(Token::Word(key))) = (words.next(), words.next()) {
            let (kind, key) = (small(kind), small(key));
            if (kind == "fulltext" || kind == "spatial") && (key == "key" || key == "index") {
                let name = words.next().map_or(String::new(), |name| text(name.bytes()));
                self.note(format!("the {} key {name} is left out", kind.to_ascii_uppercase()));
                return None;
            }
        }
        Some(self.tokens(&tokens))
    }

    fn tokens(&mut self, tokens: &[Token<'_>]) -> Vec<u8> {
        let mut line = Vec::new();
        let mut at = 0;
        // Of a clustering key whose columns are to come: how many parentheses are open.
        let mut clustering: Option<usize> = None;
        while let Some(token) = tokens.get(at) {
            let name = token.name().unwrap_or_default();
            let is_word = matches!(token, Token::Word(_));
            let value = value_at(tokens, at);
            match (name.as_str(), value) {
                ("engine", Some((end, engine))) if is_word && self.is_converted(&engine) => {
                    line.extend_from_slice(format!("ENGINE={}", self.conversion.to).as_bytes());
                    at = end;
                }
                ("row_format" | "compression", Some((end, value))) if value.starts_with("tokudb_") => {
                    line.extend_from_slice(compression_of(&value).unwrap_or_default().as_bytes());
                    at = end;
                }
                ("clustering", Some((_, next))) if is_word && (next == "key" || next == "index") => {
                    // PANDO has an option behind the columns for it. With the blank behind it.
                    clustering = Some(0);
                    at += 1;
                }
                (name, Some((end, value))) if self.is_dropped(tokens, at, end, name) => {
                    let what = DROPPED_OPTIONS.iter().find(|(option, _)| *option == name);
                    let why = what.map_or("", |(_, why)| why);
                    if !matches!(value.as_str(), "no" | "0" | "off") {
                        self.note(format!("the option {name}={value} is left out: PANDO {why}"));
                    }
                    at = end;
                    trim_blanks(&mut line);
                }
                (name, Some((end, value))) if self.conversion.notes_all && is_word => {
                    self.note_without_effect(name, &value, tokens[at + 1..end].contains(&Token::Other(b"=")));
                    line.extend_from_slice(token.bytes());
                }
                _ => line.extend_from_slice(token.bytes()),
            }
            clustering = match (clustering, token) {
                (Some(open), Token::Other(b"(")) => Some(open + 1),
                (Some(1), Token::Other(b")")) => {
                    line.extend_from_slice(b" CLUSTERING=YES");
                    None
                }
                (Some(open), Token::Other(b")")) => Some(open.saturating_sub(1)),
                (clustering, _) => clustering,
            };
            at += 1;
        }
        line
    }

    /// Of what PANDO accepts and does not do.
    fn note_without_effect(&mut self, name: &str, value: &str, is_option: bool) {
        match name {
            "row_format" if is_option && !matches!(value, "default" | "dynamic") => {
                self.note(format!(
                    "ROW_FORMAT={value} is without effect: rows take what they need, and are compressed"
                ));
            }
            "key_block_size" if is_option => self.note("KEY_BLOCK_SIZE is without effect".to_owned()),
            "data" | "index" if value == "directory" => {
                let what = name.to_ascii_uppercase();
                self.note(format!(
                    "{what} DIRECTORY is without effect: files are in the directory of the database"
                ));
            }
            "delay_key_write" | "checksum" | "pack_keys" | "page_checksum" | "transactional" if is_option => {
                self.note(format!("{} is without effect", name.to_ascii_uppercase()));
            }
            _ => {}
        }
    }

    fn is_converted(&self, engine: &str) -> bool {
        self.conversion.from.iter().any(|from| from.eq_ignore_ascii_case(engine))
    }

    fn is_dropped(&self, tokens: &[Token<'_>], at: usize, end: usize, name: &str) -> bool {
        DROPPED_OPTIONS.iter().any(|(option, _)| *option == name)
            && tokens[at + 1..end].contains(&Token::Other(b"="))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn trim_blanks(line: &mut Vec<u8>) {
    while line.last() == Some(&b' ') {
        line.pop();
    }
}

/// The table that a statement defines, if that is what begins with this line.
fn table_of(line: &[u8]) -> Option<String> {
    let head = &line[..line.len().min(16)];
    let head = small(head);
    if !(head.starts_with("create ") || head.starts_with("alter table ")) {
        return None;
    }
    let tokens = tokens(line);
    let mut words = tokens.iter().filter(|token| !matches!(token, Token::Space(_)));
    let mut name = |skipped: &[&str]| loop {
        let token = words.next()?;
        match token.name() {
            Some(word) if skipped.contains(&word.as_str()) && matches!(token, Token::Word(_)) => {}
            _ => return Some(token),
        }
    };
    if !matches!(name(&["create", "alter", "or", "replace", "temporary"]), Some(Token::Word(word)) if small(word) == "table")
    {
        return None;
    }
    let table = name(&["if", "not", "exists"])?;
    matches!(table, Token::Word(_) | Token::Quoted(_)).then(|| text(table.bytes()))
}

fn is_end(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b";")
}

impl Conversion {
    /// Reads a dump and writes the converted one. Errors: those of reading and writing.
    pub fn run(&self, mut from: impl BufRead, mut to: impl Write) -> io::Result<Report> {
        let mut report = Report::default();
        let mut line = Vec::new();
        let mut statement: Option<(String, Vec<Vec<u8>>)> = None;
        loop {
            line.clear();
            let ended = from.read_until(b'\n', &mut line)? == 0;
            if !ended {
                if statement.is_none() {
                    match table_of(&line) {
                        Some(table) => statement = Some((table, Vec::new())),
                        None => {
                            self.other_line(&line, &mut to, &mut report)?;
                            continue;
                        }
                    }
                }
                let Some((_, lines)) = &mut statement else { continue };
                lines.push(std::mem::take(&mut line));
                if !lines.last().is_some_and(|line| is_end(line)) {
                    continue;
                }
            }
            if let Some((table, lines)) = statement.take() {
                self.definition(table, lines, &mut to, &mut report)?;
            }
            if ended {
                to.flush()?;
                return Ok(report);
            }
        }
    }

    /// Settings of TokuDB's own are left out: no server has them any more.
    fn other_line(&self, line: &[u8], to: &mut impl Write, report: &mut Report) -> io::Result<()> {
        let head = small(&line[..line.len().min(40)]);
        let is_setting = head.starts_with("set ") || head.starts_with("/*!") && head.contains(" set ");
        let is_tokudb =
            |token: &Token<'_>| matches!(token, Token::Word(word) if small(word).starts_with("tokudb_"));
        if is_setting && is_end(line) && tokens(line).iter().any(is_tokudb) {
            report.notes.push(format!("left out: {}", text(line.trim_ascii())));
            return Ok(());
        }
        to.write_all(line)
    }

    fn definition(
        &self,
        table: String,
        lines: Vec<Vec<u8>>,
        to: &mut impl Write,
        report: &mut Report,
    ) -> io::Result<()> {
        let mut definition = Definition { conversion: self, table, notes: BTreeSet::new() };
        let has_engine = |line: &Vec<u8>| {
            let tokens = tokens(line);
            (0..tokens.len()).any(|at| {
                matches!(tokens[at], Token::Word(word) if small(word) == "engine")
                    && value_at(&tokens, at).is_some_and(|(_, engine)| definition.is_converted(&engine))
            })
        };
        if !lines.iter().any(has_engine) {
            return lines.iter().try_for_each(|line| to.write_all(line));
        }
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for line in &lines {
            match definition.line(line) {
                Some(line) => kept.push(line),
                None if line.trim_ascii_end().ends_with(b",") => {}
                // It was the last of the list.
                None => {
                    if let Some(last) = kept.last_mut() {
                        if let Some(comma) = last.iter().rposition(|&b| b == b',') {
                            if last[comma + 1..].iter().all(u8::is_ascii_whitespace) {
                                last.remove(comma);
                            }
                        }
                    }
                }
            }
        }
        report.tables += 1;
        let Definition { table, notes, .. } = definition;
        report.notes.extend(notes.into_iter().map(|(_, note)| format!("table {table}: {note}")));
        kept.iter().try_for_each(|line| to.write_all(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(from: &[&str], dump: &str) -> (String, Report) {
        let from = from.iter().map(|engine| (*engine).to_owned()).collect();
        let mut out = Vec::new();
        let conversion = Conversion { from, to: "PANDO".into(), notes_all: false };
        let report = conversion.run(dump.as_bytes(), &mut out).unwrap();
        (String::from_utf8(out).unwrap(), report)
    }

    #[test]
    fn a_dump_of_tokudb_becomes_one_of_pando() {
        let dump = "\
SET tokudb_commit_sync=0;
/*!40101 SET NAMES utf8 */;
CREATE TABLE `t` (
  `id` int NOT NULL COMMENT 'ENGINE=TokuDB, CLUSTERING KEY',
  `a` int DEFAULT NULL,
  `clustering` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  CLUSTERING KEY `a` (`a`,`id`(3)),
  UNIQUE CLUSTERING KEY `u` (`a`,`id`),
  KEY `b` (`a`) `clustering`=YES,
  KEY `c` (`clustering`) CLUSTERING=no
) ENGINE=TokuDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8 ROW_FORMAT=TOKUDB_LZMA COMMENT='it''s; ENGINE=TokuDB';
INSERT INTO `t` VALUES (1,'CREATE TABLE x ENGINE=TokuDB;\\n'),(2,'\\'ENGINE=TokuDB');
CREATE TABLE `m` (`a` int) ENGINE=TokuDB `compression`='tokudb_quicklz';
";
        let (out, report) = convert(&["TokuDB"], dump);
        assert_eq!(
            out,
            "\
/*!40101 SET NAMES utf8 */;
CREATE TABLE `t` (
  `id` int NOT NULL COMMENT 'ENGINE=TokuDB, CLUSTERING KEY',
  `a` int DEFAULT NULL,
  `clustering` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `a` (`a`,`id`(3)) CLUSTERING=YES,
  UNIQUE KEY `u` (`a`,`id`) CLUSTERING=YES,
  KEY `b` (`a`) `clustering`=YES,
  KEY `c` (`clustering`) CLUSTERING=no
) ENGINE=PANDO AUTO_INCREMENT=5 DEFAULT CHARSET=utf8 COMPRESSION=ZSTD COMPRESSION_LEVEL=9 COMMENT='it''s; ENGINE=TokuDB';
INSERT INTO `t` VALUES (1,'CREATE TABLE x ENGINE=TokuDB;\\n'),(2,'\\'ENGINE=TokuDB');
CREATE TABLE `m` (`a` int) ENGINE=PANDO COMPRESSION=LZ4;
"
        );
        assert_eq!(report.tables, 2);
        assert_eq!(report.notes, ["left out: SET tokudb_commit_sync=0;"]);
    }

    #[test]
    fn what_pando_refuses_is_left_out_and_said() {
        let dump = "\
CREATE TABLE `t` (
  `id` int NOT NULL,
  `c` text,
  PRIMARY KEY (`id`),
  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`),
  FULLTEXT KEY `ft` (`c`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 `ENCRYPTED`=YES `PAGE_COMPRESSED`=1;
CREATE TABLE `k` (
  `c` text,
  FULLTEXT KEY `ft` (`c`)
) ENGINE=MyISAM;
CREATE TABLE `p` (
  `id` int
) ENGINE=InnoDB
 PARTITION BY RANGE (`id`)
(PARTITION `p0` VALUES LESS THAN (10) ENGINE = InnoDB,
 PARTITION `p1` VALUES LESS THAN MAXVALUE ENGINE = InnoDB);
CREATE VIEW `v` AS SELECT 1;
";
        let (out, report) = convert(&["innodb"], dump);
        assert_eq!(
            out,
            "\
CREATE TABLE `t` (
  `id` int NOT NULL,
  `c` text,
  PRIMARY KEY (`id`),
  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`)
) ENGINE=PANDO DEFAULT CHARSET=utf8mb4 `ENCRYPTED`=YES;
CREATE TABLE `k` (
  `c` text,
  FULLTEXT KEY `ft` (`c`)
) ENGINE=MyISAM;
CREATE TABLE `p` (
  `id` int
) ENGINE=PANDO
 PARTITION BY RANGE (`id`)
(PARTITION `p0` VALUES LESS THAN (10) ENGINE=PANDO,
 PARTITION `p1` VALUES LESS THAN MAXVALUE ENGINE=PANDO);
CREATE VIEW `v` AS SELECT 1;
"
        );
        assert_eq!(report.tables, 2);
        assert_eq!(
            report.notes,
            [
                "table `t`: the FULLTEXT key `ft` is left out",
                "table `t`: the option page_compressed=1 is left out: PANDO compresses all tables anyway",
            ]
        );
    }

    #[test]
    fn what_would_be_without_effect_is_noted_when_it_is_asked_for() {
        let dump = "\
CREATE TABLE `t` (
  `data` int,
  `row_format` int COMMENT 'KEY_BLOCK_SIZE=8',
  KEY `index` (`data`)
) ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8 DATA DIRECTORY='/d';
CREATE TABLE `plain` (
  `a` int
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;
";
        let conversion = Conversion { from: vec!["InnoDB".into()], to: "PANDO".into(), notes_all: true };
        let report = conversion.run(dump.as_bytes(), io::sink()).unwrap();
        assert_eq!(
            report.notes,
            [
                "table `t`: ROW_FORMAT=compressed is without effect: rows take what they need, and are compressed",
                "table `t`: KEY_BLOCK_SIZE is without effect",
                "table `t`: DATA DIRECTORY is without effect: files are in the directory of the database",
            ]
        );
        assert_eq!(report.tables, 2);
    }

    #[test]
    fn a_dump_that_ends_in_the_middle_or_is_none_passes() {
        for dump in
            ["CREATE TABLE `t` (\n  `a` int,\n", "create ", "ALTER TABLE", "'", "\\", "CREATE TABLE `", ""]
        {
            assert_eq!(convert(&["TokuDB"], dump).0, dump);
        }
        let cut = "CREATE TABLE t (a int) ENGINE=TokuDB";
        assert_eq!(convert(&["TokuDB"], cut).0, "CREATE TABLE t (a int) ENGINE=PANDO");
    }
}
