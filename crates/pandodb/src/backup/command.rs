//! What a session tells the engine of its backup, as text, and the answers, as JSON in one line. The plugin passes
//! both on (`SET pando_backup = '...'`); `pando backup` speaks it.
//!
//! ```text
//! arm          the session wants to take a backup
//! pin          pins the state as it is now, and answers as `list`
//! list         {"last_seqno":9,"end_lsn":4711,"pins":1,"files":[{"dict":17,"table":"db/t","file":"main.pando","bytes":65536}]}
//! log          [{"path":"/data/.pando/pando-000001.log","bytes":8192}]; it is held until
//! log done     {}
//! file 17      {"path":"/data/db/t.pando/main.pando","superblock":{...}}; the file is pinned until
//! done 17      {}
//! end          {}
//! ```

use std::sync::Arc;

use pando_base::{DeletedRange, DictId, Error as EngineError};
use pando_storage::encryption::SALT_BYTES;
use pando_storage::{FileEncryption, Place, Superblock};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::db::Db;
use crate::error::Result;

/// A superblock as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuperblockText {
    dict: u64,
    epoch: u64,
    durable_seqno: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<(u64, u64)>,
    next_run: u64,
    next_node: u64,
    auto_increment: u64,
    rows_hint: u64,
    file_bytes: u64,
    /// Deleted ranges: first key, end, commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<(Vec<u8>, Option<Vec<u8>>, u64)>,
    /// With what it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encryption: Option<EncryptionText>,
}

/// Number of the key, salt, and of a mixed file one more: who does not know it cannot read this, and must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum EncryptionText {
    Whole(u32, [u8; SALT_BYTES]),
    Mixed(u32, [u8; SALT_BYTES], bool),
}

impl From<FileEncryption> for EncryptionText {
    fn from(FileEncryption { key_id, salt, is_mixed }: FileEncryption) -> EncryptionText {
        match is_mixed {
            false => EncryptionText::Whole(key_id, salt),
            true => EncryptionText::Mixed(key_id, salt, true),
        }
    }
}

impl From<EncryptionText> for FileEncryption {
    fn from(text: EncryptionText) -> FileEncryption {
        let (key_id, salt, is_mixed) = match text {
            EncryptionText::Whole(key_id, salt) => (key_id, salt, false),
            EncryptionText::Mixed(key_id, salt, is_mixed) => (key_id, salt, is_mixed),
        };
        FileEncryption { key_id, salt, is_mixed }
    }
}

impl From<&Superblock> for SuperblockText {
    fn from(sb: &Superblock) -> SuperblockText {
        SuperblockText {
            dict: sb.dict.0,
            epoch: sb.epoch,
            durable_seqno: sb.durable_seqno,
            root: sb.root.map(|root| (root.offset, root.len)),
            next_run: sb.next_run,
            next_node: sb.next_node,
            auto_increment: sb.auto_increment,
            rows_hint: sb.rows_hint,
            file_bytes: sb.file_bytes,
            deleted: sb.deleted.iter().map(|its| (its.lo.clone(), its.hi.clone(), its.seqno)).collect(),
            encryption: sb.encryption.map(EncryptionText::from),
        }
    }
}

impl From<&SuperblockText> for Superblock {
    fn from(text: &SuperblockText) -> Superblock {
        Superblock {
            dict: DictId(text.dict),
            epoch: text.epoch,
            durable_seqno: text.durable_seqno,
            root: text.root.map(|(offset, len)| Place { offset, len }),
            next_run: text.next_run,
            next_node: text.next_node,
            auto_increment: text.auto_increment,
            rows_hint: text.rows_hint,
            file_bytes: text.file_bytes,
            deleted: (text.deleted.iter().cloned())
                .map(|(lo, hi, seqno)| DeletedRange { lo, hi, seqno })
                .collect(),
            encryption: text.encryption.map(FileEncryption::from),
        }
    }
}

impl Db {
    /// Does what session `owner` asks for.
    ///
    /// # Errors
    /// Those of the step; an unknown command.
    pub fn backup_command(self: &Arc<Self>, owner: u64, command: &str) -> Result<String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        if words != ["end"] {
            self.check_open()?;
        }
        let answer = match words[..] {
            ["arm"] => {
                self.arm_backup(owner)?;
                json!({})
            }
            ["pin"] => {
                self.backup_is_of(owner)?;
                self.pin_backup();
                self.list_text(owner)?
            }
            ["list"] => self.list_text(owner)?,
            ["log"] => {
                let files = self.backup_log(owner)?;
                files
                    .iter()
                    .map(|file| json!({"path": file.path.to_string_lossy(), "bytes": file.bytes}))
                    .collect()
            }
            ["log", "done"] => {
                self.backup_log_done(owner)?;
                json!({})
            }
            ["file", dict] => {
                let source = self.backup_file(owner, dict_of(dict)?)?;
                let superblock = SuperblockText::from(&source.superblock);
                json!({"path": source.path.to_string_lossy(), "superblock": superblock})
            }
            ["done", dict] => {
                self.backup_file_done(owner, dict_of(dict)?)?;
                json!({})
            }
            ["end"] => {
                self.end_backup(owner);
                json!({})
            }
            _ => return Err(unknown(command)),
        };
        Ok(answer.to_string())
    }

    fn list_text(&self, owner: u64) -> Result<serde_json::Value> {
        let list = self.backup_list(owner)?;
        let files: serde_json::Value = (list.files.iter())
            .map(|file| json!({"dict": file.dict.0, "table": file.table, "file": file.file, "bytes": file.bytes}))
            .collect();
        Ok(json!({
            "last_seqno": list.last_seqno, "end_lsn": list.end.0, "pins": list.pins, "files": files
        }))
    }
}

fn dict_of(word: &str) -> Result<DictId> {
    word.parse().map(DictId).map_err(|_| unknown(word))
}

fn unknown(command: &str) -> crate::error::Error {
    EngineError::NotFound { what: format!("the backup command '{command}'") }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixed_file_is_told_in_a_way_that_older_tools_do_not_take_for_an_encrypted_one() {
        for is_mixed in [false, true] {
            let encryption = Some(FileEncryption { key_id: 7, salt: [3; SALT_BYTES], is_mixed });
            let sb = Superblock { encryption, ..Superblock::default() };
            let text = serde_json::to_string(&SuperblockText::from(&sb)).unwrap();
            let read: SuperblockText = serde_json::from_str(&text).unwrap();
            assert_eq!(Superblock::from(&read), sb);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let older: std::result::Result<(u32, [u8; SALT_BYTES]), _> =
                serde_json::from_value(value.get("encryption").unwrap().clone());
            assert_eq!(older.is_err(), is_mixed);
        }
    }
}
