//! The examples do what they say.

#[path = "../examples/garages.rs"]
mod garages;
#[path = "../examples/key_value.rs"]
mod key_value;
#[path = "../examples/queue.rs"]
mod queue;
#[path = "../examples/readings.rs"]
mod readings;

#[test]
fn key_value_reads_a_range_and_runs_again_in_the_same_directory() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert_eq!(key_value::run(dir.path()).unwrap(), ["banana: brown", "cherry: dark red"]);
    }
}

#[test]
fn garages_moves_and_sells_cars_in_one_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let cars: Vec<String> = garages::run(dir.path()).unwrap().iter().map(|car| format!("{car:?}")).collect();
    let plates: Vec<&str> = cars.iter().map(|car| &car[..15]).collect();
    assert_eq!(plates, ["Car { plate: 11", "Car { plate: 13", "Car { plate: 14"]);
}

#[test]
fn each_job_of_the_queue_is_done_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut done = queue::run(dir.path()).unwrap();
    assert_eq!(done.len(), 200);
    done.sort();
    done.dedup();
    assert_eq!(done.len(), 200);
}

#[test]
fn readings_keep_three_days() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(readings::run(dir.path()).unwrap(), (vec![103, 104, 105], 30.5));
}
