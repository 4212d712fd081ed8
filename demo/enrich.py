#!/usr/bin/env python3
"""Turns the raw flights and airports of data/ into the columns of the air-traffic benchmark.

    demo/enrich.py OUT.tsv

The output is what LOAD DATA INFILE reads by default: tab-separated, \\N for NULL, one line a flight,
in the column order of demo/schema.sql without the id. What the source lacks is derived: a flight
with a cancellation code was cancelled; one that left and has no arrival was diverted; delays are
cut off at 0 for the "Minutes" columns; the distance group counts steps of 250 miles. What cannot be
derived (airline and airport numbers, wheels off and on) is not there.
"""

import csv
import gzip
import pathlib
import sys

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
_NULL = "\\N"


def read_airports():
    """IATA code -> ("City, ST", "ST"); both \\N where the source does not know the city."""
    airports = {}
    with open(DATA / "airports.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            city, state = row["city"], row["state"]
            known = city not in ("", "NA") and state not in ("", "NA")
            airports[row["iata"]] = (f"{city}, {state}", state) if known else (_NULL, _NULL)
    return airports


def _clean(value):
    return _NULL if value in ("", "NA", _NULL) else value


def _at_least_zero(delay):
    return _NULL if delay == _NULL else str(max(0, int(delay)))


def _late_15(delay):
    return _NULL if delay == _NULL else "1" if int(delay) >= 15 else "0"


def enrich(flight, airports):
    """One raw flight (a dict of the source's columns) as a list of the benchmark's values."""
    raw = {name: _clean(value) for name, value in flight.items()}
    month, day = int(raw["Month"]), int(raw["DayofMonth"])
    cancelled = raw["CancellationCode"] != _NULL
    diverted = not cancelled and raw["ArrTime"] == _NULL
    origin_city, origin_state = airports.get(raw["Origin"], (_NULL, _NULL))
    dest_city, dest_state = airports.get(raw["Dest"], (_NULL, _NULL))
    return [
        raw["Year"], str((month + 2) // 3), raw["Month"], raw["DayofMonth"], raw["DayOfWeek"],
        f"{raw['Year']}-{month:02}-{day:02}", raw["UniqueCarrier"], raw["UniqueCarrier"],
        raw["TailNum"], raw["FlightNum"],
        raw["Origin"], origin_city, origin_state, raw["Dest"], dest_city, dest_state,
        raw["CRSDepTime"], raw["DepTime"], raw["DepDelay"], _at_least_zero(raw["DepDelay"]),
        _late_15(raw["DepDelay"]), raw["TaxiOut"], raw["TaxiIn"],
        raw["CRSArrTime"], raw["ArrTime"], raw["ArrDelay"], _at_least_zero(raw["ArrDelay"]),
        _late_15(raw["ArrDelay"]), str(int(cancelled)), raw["CancellationCode"], str(int(diverted)),
        raw["CRSElapsedTime"], raw["ActualElapsedTime"], raw["AirTime"], "1", raw["Distance"],
        str(min(11, int(raw["Distance"]) // 250 + 1)), raw["CarrierDelay"], raw["WeatherDelay"],
        raw["NASDelay"], raw["SecurityDelay"], raw["LateAircraftDelay"],
    ]


def write_tsv(path):
    """Enrich all flights into `path`. Returns how many."""
    airports, count = read_airports(), 0
    with gzip.open(DATA / "flights-2008-sample.csv.gz", "rt", newline="", encoding="utf-8") as source, \
            open(path, "w", encoding="utf-8") as target:
        for flight in csv.DictReader(source):
            target.write("\t".join(enrich(flight, airports)) + "\n")
            count += 1
    return count


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(write_tsv(sys.argv[1]), "flights")
