//! The tree's shape after scripted work. A file holds commands (`> command`), each followed by what
//! it printed; `UPDATE_GOLDEN=1` rewrites the files.

use std::fmt::Write;
use std::path::PathBuf;

use super::world::{tiny, World};
use crate::TreeConfig;

fn number(word: &str) -> usize {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}

/// `a..b` or `a..b step s`.
fn numbers(words: &[&str]) -> (Vec<usize>, usize) {
    let (from, to) = words[0].split_once("..").expect("a range");
    match words.get(1) {
        Some(&"step") => ((number(from)..number(to)).step_by(number(words[2])).collect(), 3),
        _ => ((number(from)..number(to)).collect(), 1),
    }
}

fn configure(words: &[&str]) -> TreeConfig {
    let mut config = tiny();
    for word in words {
        let (name, value) = word.split_once('=').expect("name=value");
        match name {
            "memtable" => config.memtable_bytes = number(value),
            "leaf" => config.leaf_raw_bytes = number(value) as u64,
            "segment" => config.run.segment_raw_bytes = number(value),
            "fanout" => config.fanout_max = number(value),
            "runs" => config.buffer_runs_max = number(value),
            "alike" => config.buffer_compression = config.run.compression,
            other => panic!("unknown setting {other}"),
        }
    }
    config
}

fn execute(world: &mut World, words: &[&str], out: &mut String) {
    match words {
        ["config", rest @ ..] => *world = World::new(1, configure(rest)),
        ["put", "range", rest @ ..] => {
            let (keys, used) = numbers(rest);
            let len = rest.get(used).map_or(20, |word| number(word));
            for n in keys {
                world.put(&format!("k{n:04}"), &"v".repeat(len));
            }
        }
        ["put", key, value] => world.put(key, value),
        ["delete", "range", rest @ ..] => {
            for n in numbers(rest).0 {
                world.delete(&format!("k{n:04}"));
            }
        }
        ["delete", key] => world.delete(key),
        ["snapshot"] => {
            let snapshot = world.horizon.take();
            world.snapshots.push(snapshot);
        }
        ["release"] => world.release_all(),
        ["seal"] => {
            let _ = writeln!(out, "sealed: {}", world.seal());
        }
        ["job"] => {
            let _ = writeln!(out, "did: {}", world.tree.run_job().unwrap());
        }
        ["jobs"] => world.run_jobs(),
        ["checkpoint"] => {
            let stats = world.checkpoint().unwrap();
            let _ = writeln!(out, "durable {}, {} nodes", stats.durable_seqno, stats.nodes_written);
        }
        ["truncate"] => world.truncate(),
        ["compact"] => world.tree.compact_all().unwrap(),
        ["crash"] => {
            world.crash();
        }
        ["scan"] => {
            let snapshot = world.last;
            let rows = super::world::scan(&world.tree, snapshot);
            let _ = writeln!(out, "{} rows", rows.len());
        }
        ["shape"] => out.push_str(&world.tree.shape()),
        ["counts"] => {
            let m = &world.metrics;
            let _ = writeln!(
                out,
                "{} flushes, {} by reference, {} compactions, {} versions dropped",
                m.flushes.get(),
                m.flush_by_reference.get(),
                m.compactions.get(),
                m.versions_dropped.get()
            );
        }
        other => panic!("unknown command {other:?}"),
    }
}

fn play(script: &str) -> String {
    let mut world = World::new(1, tiny());
    let mut out = String::new();
    for line in script.lines() {
        if let Some(comment) = line.strip_prefix('#') {
            let _ = writeln!(out, "#{comment}");
        }
        let Some(command) = line.strip_prefix("> ") else { continue };
        let _ = writeln!(out, "> {command}");
        let words: Vec<&str> = command.split_whitespace().collect();
        execute(&mut world, &words, &mut out);
    }
    world.check_all();
    out
}

fn golden(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(&path).unwrap();
    let found = play(&expected);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).unwrap();
        return;
    }
    assert_eq!(found, expected, "{} differs; UPDATE_GOLDEN=1 rewrites it", path.display());
}

#[test]
fn random_inserts_make_a_tree_of_levels() {
    golden("random_inserts");
}

#[test]
fn inserts_in_key_order_pass_by_reference() {
    golden("sequential_inserts");
}

#[test]
fn inserts_of_several_sessions_in_key_order_are_merged_at_the_seams_only() {
    golden("several_sessions");
}

#[test]
fn a_queue_leaves_nothing_behind() {
    golden("queue");
}

#[test]
fn snapshots_keep_what_they_see_and_no_longer() {
    golden("snapshots");
}

#[test]
fn checkpoints_write_only_what_is_new() {
    golden("checkpoints");
}

#[test]
fn small_runs_are_merged_in_the_buffer() {
    golden("small_runs");
}
