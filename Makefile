# SPDX-License-Identifier: BSD-2-Clause
# The commands for people.  Most call a script of ci/; these scripts build by Meson.
.PHONY: all setup demo test nightly bench package bundle check-format format lint docs \
	clean help
MAKEFLAGS += --no-print-directory

all:
	@ci/build out
	@echo
	@echo "./adverb is ready.  Try:  ./adverb pair -- ib_write_bw"
	@echo "Other things to do:       make help"

help:
	@echo "make              build; leaves ./adverb, nothing is installed"
	@echo "make demo         get what is missing, build, run RDMA programs"
	@echo "make test         build and run every test and lint"
	@echo "make lint         the lints alone"
	@echo "make nightly      the long runs: 20 000 seeds, fuzzing, valgrind"
	@echo "make bench        measure against the raw limit of this machine"
	@echo "make package      Debian packages, left in build/package"
	@echo "make bundle       one tar file that runs where it is unpacked, in build/package"
	@echo "make check-format check the C code by clang-format (make format: change it)"
	@echo "make docs         write the generated parts of the documents"
	@echo "make setup        get packages: installed for root, else unpacked in build/deb"
	@echo "make clean        remove build/ and ./adverb"

setup:
	@ci/setup --test

demo:
	@ci/setup
	@TARGET=product ci/build out
	@tools/demo

test:
	@ci/setup --test
	@ci/test

nightly:
	@ci/setup --test
	@ci/nightly

bench:
	@ci/setup --bench
	@ci/build out
	@ci/bench

package:
	@ci/package

bundle:
	@ci/bundle

lint:
	@ci/build out >/dev/null
	@ci/lint

check-format:
	@ci/lint-format

format:
	@git ls-files '*.c' '*.h' | xargs -r clang-format -i

docs:
	@ci/works-table
	@ci/citations

clean:
	rm -rf build adverb
