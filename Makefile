# The entry point. Every target gets the machine ready by itself (scripts/setup.sh), and doing nothing
# is quick.

SERVER_DIR ?= build/server
# What make bench runs; for example BENCH='ontime --rows 2000000 --engines PANDO,InnoDB,ROCKSDB --cache-mb 1024'.
BENCH ?= iibench --rows 200000
BENCH_DIR ?= build/bench

.DEFAULT_GOAL := help
.PHONY: help setup build test quick conformance sim sim-bugs demo docs cluster bench bench-suites server stop-server packages packages-test image image-test clean distclean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
	  awk -F'\t' '{ printf "make %-13s %s\n", $$1, $$2 }'

setup: ## install what is needed: MariaDB with headers and source, Rust, compiler
	@scripts/setup.sh

build: setup ## the plugin for the server: build/ha_pando.so
	@scripts/build.sh

test: ## all checks, as CI runs them (one stage: scripts/test.sh unit)
	@scripts/test.sh

quick: ## the quick checks of a change, under a minute (scripts/quick.sh)
	@scripts/quick.sh

conformance: build ## the server's own suites for storage engines, all of them (long; docs/compatibility.md)
	@scripts/mtr.sh --suite storage_engine
	@scripts/conformance.py
	@tests/sql/rr_trx.sh --seconds 300 --clients 10

SEEDS ?= 1000
FIRST ?= 1

sim: ## simulate crashes and faults: make sim SEEDS=10000 FIRST=1 (docs/simulation.md)
	@cargo run --release -p pando-sim -- run --seeds $(SEEDS) --first $(FIRST) --threads $$(nproc)

sim-bugs: ## see the simulation find each planted bug
	@cargo run --release -p pando-sim --features planted-bugs -- bugs

demo: build ## see the engine at work
	@scripts/demo.sh

docs: ## the documents as a site with search: build/book/index.html (fetches mdBook the first time)
	@[ -x build/tools/bin/mdbook ] || \
	  cargo install mdbook@0.5.4 --locked --no-default-features --features search --root build/tools
	@scripts/book.py

cluster: build ## a Spider front over three shards with replicas; one is killed and replaced (docs/cluster.md)
	@scripts/cluster.py $(if $(KEEP),--keep)

bench: build ## a small benchmark beside InnoDB, with a page of charts (docs/benchmarks.md)
	@cargo build --release -p pando-bench
	@mkdir -p $(BENCH_DIR)
	@target/release/pando-bench run $(BENCH) --html $(BENCH_DIR)/report.html --json $(BENCH_DIR)/report.json
	@echo "charts: $(BENCH_DIR)/report.html"

SUITES ?= --suites tpch,ssb,ontime --scale 1 --rows 2000000

bench-suites: build ## TPC-H, the star schema benchmark and air traffic beside DuckDB (docs/benchmarks/analytics.md)
	@cargo build --release -p pando-bench
	@[ -x $(BENCH_DIR)/venv/bin/tpchgen-cli ] || { \
	  python3 -m venv $(BENCH_DIR)/venv && $(BENCH_DIR)/venv/bin/pip install --quiet duckdb tpchgen-cli; }
	@$(BENCH_DIR)/venv/bin/python scripts/bench-suites.py $(SUITES)

server: build ## a private server with the engine that stays until make stop-server
	@if scripts/private-server.sh status $(SERVER_DIR) >/dev/null; then \
	  echo "already running (make stop-server stops it; then it can run a new build)"; \
	else \
	  scripts/private-server.sh start $(SERVER_DIR) >/dev/null; \
	fi
	@echo "connect:  mariadb --no-defaults -uroot -S $$(scripts/private-server.sh socket $(SERVER_DIR))"
	@echo "data:     $(SERVER_DIR)/data, log: $(SERVER_DIR)/error.log"
	@echo "stop:     make stop-server"

stop-server: ## stop the server of make server; its data stay
	@scripts/private-server.sh stop $(SERVER_DIR)

packages: setup ## Debian packages for the MariaDB that is installed: build/packages/*.deb (docs/packages.md)
	@scripts/packages.sh

packages-test: packages ## install, use, remove and install them again in a new Debian 12 (root)
	@scripts/packages-test.sh

image: packages ## a container image with MariaDB and PANDO: build/image (root)
	@scripts/image.sh

image-test: image ## run that image in a directory, as a container would (root)
	@scripts/image.sh test

clean: stop-server ## remove what was built and the data of make server; what setup fetched stays
	@rm -rf target build/cmake build/mtr build/mtr-var build/logs build/packages build/packages-* build/image build/ha_pando.so $(SERVER_DIR)
	@rm -rf build/cmake-configure.log build/datadir-*

distclean: clean ## remove what setup fetched too
	@rm -rf build
