# Everything a person does with this repository. On a fresh Debian machine with
# R, `make demo` and `make test` install what is missing first.

R ?= R
RSCRIPT ?= Rscript
VERSION := $(shell sed -n 's/^Version: //p' DESCRIPTION)
TARBALL := noiseaware_$(VERSION).tar.gz
# where the package is installed for demo, test and bench: nothing outside is touched
LIBRARY := $(CURDIR)/.library
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
export R_LIBS := $(LIBRARY)
SOURCES := $(wildcard R/*.R src/*.c src/*/*.[ch] src/Makevars inst/include/*.h) DESCRIPTION NAMESPACE

.PHONY: demo test peers check deepcheck bench benchmark lint docs site install clean

demo: install
	$(RSCRIPT) tools/demo.R demo

test: install
	tools/install-packages test
	$(RSCRIPT) tools/test.R

# the tests of methods for other packages, with those that Debian does not have, in a library of
# its own: they bring newer versions of shared packages; and that which compiles a Stan program
peers: install
	R_LIBS=$(LIBRARY)-peers:$(LIBRARY) tools/install-packages peers
	NOISEAWARE_PEERS=true R_LIBS=$(LIBRARY)-peers:$(LIBRARY) $(RSCRIPT) tools/test.R "^link_"

check: $(TARBALL)
	tools/install-packages check manual
	tools/check $(TARBALL)

# in a library of its own: the peers bring newer versions of shared packages
bench: install
	R_LIBS=$(LIBRARY)-bench:$(LIBRARY) tools/install-packages bench
	R_LIBS=$(LIBRARY)-bench:$(LIBRARY) $(RSCRIPT) bench/run.R

# the problems of inst/benchmark: references against what is stored, then all methods are run and scored; ONLY=trial,quakes takes some problems. dapper and Stan
# take part if `make bench` has installed them.
benchmark: install
	$(RSCRIPT) inst/benchmark/make.R --check $(if $(ONLY),--only $(ONLY))
	R_LIBS=$(LIBRARY)-bench:$(LIBRARY) $(RSCRIPT) inst/benchmark/run.R $(if $(ONLY),--only $(ONLY))

# everything that takes long: compilers, analysers, sanitizers, faults, random calls
deepcheck:
	tools/deepcheck

# the papers' tables and figures: QUICK=1 takes few replicates, CIRRHOSIS=file.csv
# adds the one whose data are not in the package
replicate: install
	cd inst/replication && $(RSCRIPT) run.R --pictures=../../vignettes/replication $(if $(QUICK),--quick) $(if $(CIRRHOSIS),--cirrhosis=$(abspath $(CIRRHOSIS)))

lint:
	tools/install-packages lint
	$(RSCRIPT) tools/lint.R
	$(RSCRIPT) tools/layers.R
	$(RSCRIPT) tools/paper.R
	tools/mutations -n

docs:
	tools/install-packages docs
	$(RSCRIPT) -e 'roxygen2::roxygenise(load_code = "source")'

# the web site, written to site/
site: install
	tools/install-packages site
	$(RSCRIPT) tools/site.R

install: $(LIBRARY)/.installed

$(LIBRARY)/.installed: $(SOURCES)
	tools/install-packages
	mkdir -p $(LIBRARY)
	MAKEFLAGS=-j$(CORES) $(R) CMD INSTALL --preclean --clean --no-test-load --library=$(LIBRARY) .
	touch $@

$(TARBALL): $(SOURCES) $(wildcard man/*.Rd tests/testthat/*.R vignettes/*)
	tools/install-packages check
	$(R) CMD build .

clean:
	rm -rf $(LIBRARY) $(LIBRARY)-peers *.tar.gz *.Rcheck demo site src/*.o src/*/*.o src/*.so
