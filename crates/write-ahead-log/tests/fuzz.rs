//! Feeds damaged bytes to the write-ahead log and the JSON stores: they must refuse them or read the intact
//! parts, without a panic.

use std::fs;
use std::path::Path;

use serde_json::json;
use sparrow_fuzzing::{Campaign, Random, mutated, mutated_json};
use sparrow_write_ahead_log::{DataDir, Wal, salvage};

const FILE_HEADER: usize = 20;
const RECORD_HEADER: usize = 20;

/// File names and contents of a log with some records, over two generations.
fn logs(folder: &Path) -> Vec<(String, Vec<u8>)> {
    {
        let (wal, _) = Wal::open(folder).unwrap();
        for number in 0..5_u8 {
            let lsn = wal.append(&vec![number; usize::from(number) * 9]).unwrap();
            wal.sync(lsn).unwrap();
        }
        wal.roll().unwrap();
        let lsn = wal.append(b"{\"a\":1}").unwrap();
        wal.sync(lsn).unwrap();
    }
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| name.starts_with("wal-"))
        .collect();
    files.sort();
    files
}

/// Corrects the checksums of a damaged file and its records, as far as the record lengths permit.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < FILE_HEADER {
        return bytes;
    }
    let head = crc32fast::hash(&bytes[..16]);
    bytes[16..20].copy_from_slice(&head.to_le_bytes());
    let mut at = FILE_HEADER;
    while bytes.len() >= at + RECORD_HEADER {
        let mut length = [0; 4];
        length.copy_from_slice(&bytes[at + 4..at + 8]);
        let end = (at + RECORD_HEADER).saturating_add(u32::from_le_bytes(length) as usize);
        if end > bytes.len() {
            break;
        }
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[at + 4..at + 16]);
        hasher.update(&bytes[at + RECORD_HEADER..end]);
        bytes[at + 16..at + 20].copy_from_slice(&hasher.finalize().to_le_bytes());
        at = end;
    }
    bytes
}

#[test]
fn damaged_logs() {
    let good = tempfile::tempdir().unwrap();
    let files = logs(good.path());
    assert!(files.len() >= 2 && files.iter().all(|(_, bytes)| &sealed(bytes.clone()) == bytes));
    let seeds: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| bytes.clone()).collect();
    let tried = tempfile::tempdir().unwrap();
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "wal").run(
        |random: &mut Random| {
            let bytes = mutated(random, &seeds, &[b"SPRWAL\0\x02", &0x5EC0_12D5_u32.to_le_bytes()]);
            if random.once_in(3) { bytes } else { sealed(bytes) }
        },
        |bytes| {
            // The damaged file is the first or the last, as its length happens to be.
            let damaged = bytes.len() % files.len();
            let folder = tried.path().join("log");
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            for (number, (name, whole)) in files.iter().enumerate() {
                fs::write(folder.join(name), if number == damaged { bytes } else { whole }).unwrap();
            }
            let _ = salvage(&folder);
            if let Ok((wal, replay)) = Wal::open(&folder) {
                drop(replay);
                let _ = wal.replay();
            }
        },
    );
}

#[test]
fn damaged_stores() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(folder.path()).unwrap();
    let value = json!({"a": [1, 2.5, null], "b": {"c": "text", "d": true}});
    data.write_json("tried", &value).unwrap();
    let path = folder.path().join("store").join("tried.json");
    let good = fs::read(&path).unwrap();
    let values = [value.clone()];
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "stores").run(
        |random: &mut Random| {
            if random.once_in(2) {
                return mutated(
                    random,
                    std::slice::from_ref(&good),
                    &[b"\"format\"", b"\"checksum\"", b"\"value\""],
                );
            }
            let text = mutated_json(random, &values);
            let checksum = crc32fast::hash(&text);
            [format!(r#"{{"format":1,"checksum":{checksum},"value":"#).as_bytes(), &text, b"}"].concat()
        },
        |bytes| {
            fs::write(&path, bytes).unwrap();
            if let Ok(Some(read)) = data.read_json("tried") {
                // Only what was written with its checksum is taken.
                let again = String::from_utf8_lossy(bytes);
                assert!(read == value || again.contains("checksum"), "{again}");
            }
        },
    );
}
