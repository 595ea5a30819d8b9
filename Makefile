# SPDX-License-Identifier: GPL-2.0
#
# make              builds the modules for the running kernel, or for KDIR=...
# make demo         shows kfabric at work inside QEMU
# make test         runs the test suite inside QEMU
# make help         says the rest

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := modules

top := $(CURDIR)
cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kfabric

.PHONY: help
help:
	@echo 'For your own kernel:'
	@echo '  make [KDIR=...]     build the modules for a kernel >= 7.3 with CONFIG_RUST=y; KDIR is'
	@echo '                      its build folder (default: that of the running kernel).'
	@echo '                      The modules, Module.symvers and the headers for consumers (include)'
	@echo '                      come to build/modules, or MO=...'
	@echo '  make modules_install  install them for that kernel; Module.symvers and include in'
	@echo '                      /usr/src/kfabric/RELEASE'
	@echo '                      KFI_MODULES="FOLDER ..." builds modules in Rust of others, too'
	@echo '                      (Documentation/providers.md)'
	@echo '  make dkms_install   the source to /usr/src/kfabric-VERSION, for dkms (DESTDIR=...)'
	@echo '  make doc            build/doc: what there is for modules in Rust, for a browser'
	@echo '  make tools          build/kfi, the command for /dev/kfi, linked statically'
	@echo '  make tools_install  install it, with manual pages, in PREFIX (/usr/local; DESTDIR=...)'
	@echo
	@echo 'In a virtual machine, with tools and kernels installed and built as needed:'
	@echo '  make demo           see kfabric at work'
	@echo '  make demo-net       see two machines at it, until one of them is reset'
	@echo '  make test           run the test suite; ARGS=... goes to it (ARGS=--help)'
	@echo '  make test-net       the same with NICs that reach each other over TCP, and several machines'
	@echo '  make test-machines  two machines, MACHINES=4 four, and all that may happen to them and to the'
	@echo '                      network between them; ARGS=... goes to kfi-net (ARGS=--help)'
	@echo '  make test-debug     the suite in a kernel that looks for mistakes, at a tenth of the size'
	@echo '  make test-deep      suite, fuzzing, failing allocations, loading and unloading, load and'
	@echo '                      stress in that kernel, and a sample of faults made by rules'
	@echo '  make mutations      see whether the tests notice deliberate faults'
	@echo '  make mutants        the same with 300 faults made by rules (ARGS=--help)'
	@echo '  make check          formatting, lints, ABI, documentation, style'
	@echo '  make litmus         ask the memory model of the kernel about the protocols without locks'
	@echo '  make coverage-map   which tests show which requirement'
	@echo '  make coverage       which lines of the modules the suite reaches; ARGS=... goes to it'
	@echo '      COVERAGE_RUNS="suite machines failing"  and two machines, and failing allocations'
	@echo '  make fuzz           look for requests that lead to code where none has led before, for'
	@echo '                      FUZZ_SECONDS, and keep them in qemu-test/corpus'
	@echo '  make test-lustre LUSTRE=...  run Lustre'"'"'s network driver over kfabric; LUSTRE is a'
	@echo '                      checkout or tarball of lustre-release (Documentation/lustre.md)'
	@echo '  make test-lustre-net LUSTRE=...  its transfers with NICs that reach each other over TCP'
	@echo '  make test-lustre-machines LUSTRE=...  two machines, one of which is cut off and reset'
	@echo '  make demo-lustre LUSTRE=...  see it at work; make shell-lustre, a shell with it'
	@echo '  make shell          a shell in the machine'
	@echo '  make bench          measure kfabric beside other designs, in user-mode Linux (or'
	@echo '                      VEHICLE=qemu): tables and plots in build/bench/index.html; ARGS=...'
	@echo '                      goes to kfi-bench run (ARGS=--help)'
	@echo '  make bench-compare OLD=... NEW=...  compare two files of results'
	@echo '  make irqsoff        measure the longest time with interrupts off, in instructions; ARGS=...'
	@echo '                      goes to kfi-bench irqsoff (ARGS=--help)'
	@echo '  make bench-table    put the ratios of the last runs into Documentation/benchmarks.md'
	@echo '      VEHICLE=uml     user-mode Linux instead of QEMU'
	@echo '      KIND=debug      that kernel instead of the fast one; KIND=kcsan, one that looks for'
	@echo '                      data races'
	@echo
	@echo '  make setup          install the tools only (scripts/setup --help)'
	@echo '  make clean          remove build/; kernels and tools stay in the cache'

# --- modules for a kernel -----------------------------------------------------

KDIR ?= /lib/modules/$(shell uname -r)/build
MO ?= build/modules

# Kernels of scripts/kernel say what they were built with.
-include $(KDIR)/kfabric.mk

kernel_config = $(KDIR)/include/config/auto.conf
kernel_release = $(shell cat $(KDIR)/include/config/kernel.release 2>/dev/null)

# A kernel that clang built needs modules that clang built.
ifeq ($(LLVM),)
ifeq ($(shell grep -s '^CONFIG_CC_IS_CLANG=y' $(kernel_config)),CONFIG_CC_IS_CLANG=y)
LLVM := 1
endif
endif

kbuild_vars := ARCH LLVM CC RUSTC HOSTRUSTC RUSTDOC RUSTFMT CLIPPY_DRIVER BINDGEN \
	KRUSTFLAGS KCFLAGS CLIPPY KFI_MODULES KFI_COVERAGE
# Not what make itself takes for a compiler.
kbuild_args = $(foreach var,$(kbuild_vars),$(if \
	$(filter default undefined,$(origin $(var))),,$(var)='$($(var))'))
kbuild = $(MAKE) -C $(KDIR) M=$(top) MO=$(abspath $(MO)) $(kbuild_args)

.PHONY: modules
modules: check-kernel
	+@$(kbuild) modules
	@mkdir -p $(MO)/include
	@cp -ru include/. $(MO)/include
	@echo 'kfabric: modules, Module.symvers and include for Linux $(kernel_release) are in $(MO)'

# As kernel packages do with what modules of others are built with. A consumer's
# configure is told where that is: --with-kfi=/usr/src/kfabric/RELEASE.
headers_dir = $(INSTALL_MOD_PATH)/usr/src/kfabric/$(kernel_release)

.PHONY: modules_install
modules_install: modules
	+@$(kbuild) modules_install
	@mkdir -p $(headers_dir)
	@cp -r $(MO)/Module.symvers $(MO)/include $(headers_dir)
	@echo 'kfabric: Module.symvers and include are in $(headers_dir)'

# The source, for dkms to build the modules for every kernel that comes.
version := 0.1.0
dkms_dir = $(DESTDIR)/usr/src/kfabric-$(version)

.PHONY: dkms_install
dkms_install:
	@rm -rf $(dkms_dir)
	@mkdir -p $(dkms_dir)
	@cp -r Kbuild Makefile LICENSE README.md include rust scripts $(dkms_dir)
	@sed 's/@VERSION@/$(version)/' scripts/dkms.conf >$(dkms_dir)/dkms.conf
	@echo 'kfabric: the source is in $(dkms_dir): dkms install kfabric/$(version)'

# For those who write modules in Rust: no code is made of it, but a kernel has to be there.
.PHONY: doc
doc: MO = build/doc
doc: check-kernel
	+@$(kbuild) -s KFI_DOC=1 modules
	@echo 'kfabric: build/doc/doc/kfabric_rs/kfi/index.html'

.PHONY: check-kernel
check-kernel:
	@scripts/check-kernel '$(KDIR)' '$(or $(RUSTC),rustc)' '$(or $(BINDGEN),bindgen)'

# --- in a virtual machine -----------------------------------------------------

VEHICLE ?= qemu
KIND ?= $(if $(filter uml,$(VEHICLE)),uml,fast)
ARGS ?=
# Parameters of modules: MODULE.NAME=VALUE. The mock providers go through 10000 rounds, the
# transfers and those of the network driver through 100000, if they are not told to do less, as
# they are because a run is to take two minutes; and where all is slow a test posts for longer than
# messages wait by default. Memory that a device has mapped goes by way of bounce buffers, if it can.
parameters := kfi_mock.rounds=1000 kfi_transfer.rounds=10000 \
	kfi_lnd.transactions=2000 kfi_soft.pending=131072 swiotlb=2048,force
parameters_debug := kfi_mock.rounds=300 kfi_transfer.rounds=10000 \
	kfi_lnd.transactions=500 kfi_soft.pending=8192 kfi_soft.rnr_timeout=10000 \
	kfi_transfer.rnr_timeout=10000 swiotlb=2048,force
APPEND ?= $(if $(filter debug kcsan,$(KIND)),$(parameters_debug),$(parameters))
# Many times what a run takes, for slow and busy machines.
TIMEOUT ?= $(if $(filter debug kcsan,$(KIND)),7200,1800)

out := build/$(if $(KFI_COVERAGE),coverage$(addprefix -,$(filter-out fast,$(KIND))),$(KIND))
programs := kfi kfi-bench kfi-demo kfi-net kfi-suite
example := build/example/kfi_user
# A tool as scripts/setup has found it.
tool = $(or $(shell sed -n 's/^$(1) := //p' $(cache)/toolchain.mk 2>/dev/null),$(2))

.PHONY: setup
setup:
	@scripts/setup

# Everything that runs in the machine: tools, kernel, modules, programs, image.
# The kernel and the tools are known once they are there, hence the recursion.
.PHONY: machine
machine:
	@scripts/setup --quiet
	@scripts/kernel $(KIND) >/dev/null
	+@$(MAKE) KDIR="$$(scripts/kernel --print $(KIND))" MO=$(out)/modules image

.PHONY: image
image: quiet-modules guest $(example)
	@mkdir -p $(out)/image/modules
	@cp -u $(MO)/*.ko $(out)/consumer/*.ko $(out)/image/modules
	+@$(MAKE) make-image

# Of modules that are there.
.PHONY: make-image
make-image:
	@mkdir -p $(out)/image/programs
	@cp -u $(addprefix build/guest/x86_64-unknown-linux-gnu/release/,$(programs)) $(example) \
		$(out)/image/programs
	@qemu-test/image --output $(out)/image.gz --modules $(out)/image/modules \
		--programs $(out)/image/programs --busybox $(call tool,BUSYBOX,busybox) \
		--extra qemu-test/corpus/dev_kfi.jsonl

# The consumer is built as anybody would build theirs: see its Makefile.
.PHONY: quiet-modules
quiet-modules: check-kernel
	@mkdir -p $(out)/consumer
	@echo 'kfabric: building the modules for Linux $(kernel_release) ($(KIND))'
	+@{ $(kbuild) KFI_TESTS=1 modules && \
	$(MAKE) -C qemu-test/consumer modules KDIR=$(KDIR) KFABRIC=$(top)/$(MO) \
		OUT=$(top)/$(out)/consumer $(kbuild_args); } >$(out)/build.log 2>&1 || \
		{ cat $(out)/build.log; false; }

# The compiler beside cargo: the rustc of rustup obeys a rust-toolchain file, and packages of
# others have some.
own_rustc = $(patsubst %,RUSTC=%,$(wildcard $(dir $(call tool,CARGO))rustc))

.PHONY: guest
guest:
	@echo 'kfabric: building the programs'
	@cd qemu-test/guest && $(own_rustc) BINDGEN=$(call tool,BINDGEN,bindgen) \
		CARGO_TARGET_DIR=$(top)/build/guest $(call tool,CARGO,cargo) build --release --locked --quiet

# The program in C of Documentation/user-space.md, as that says it is built, but linked statically as the
# others are, by the compiler that links those. It is an old C: the headers ask for no newer one.
$(example): qemu-test/example/kfi_user.c $(wildcard include/*.h include/uapi/*.h \
		qemu-test/guest/kfi/include/linux/*.h)
	@mkdir -p $(@D)
	@cc -std=gnu99 -O2 -Wall -Wextra -Werror -static -Iqemu-test/guest/kfi/include -Iinclude -o $@ $<

# --- the command for people ---------------------------------------------------
# Linked statically, as the machine's are.

PREFIX ?= /usr/local
DESTDIR ?=
install_prefix = $(DESTDIR)$(PREFIX)

.PHONY: tools
tools:
	@scripts/setup --quiet
	+@$(MAKE) guest
	@cp -u build/guest/x86_64-unknown-linux-gnu/release/kfi build/kfi
	@echo 'kfabric: build/kfi'

.PHONY: tools_install
tools_install: tools
	@install -D -m 755 build/kfi $(install_prefix)/bin/kfi
	@install -D -m 644 Documentation/man/kfi.1 $(install_prefix)/share/man/man1/kfi.1
	@install -D -m 644 Documentation/man/kfi_soft.7 $(install_prefix)/share/man/man7/kfi_soft.7
	@echo 'kfabric: kfi and its manual pages are in $(install_prefix)'

# --- runs in the machine ------------------------------------------------------

image_file = $(out)/image.gz
run = $(call tool,PYTHON,python3) qemu-test/run --kernel "$$(scripts/kernel --print $(KIND))" \
	--image $(image_file) --vehicle $(VEHICLE) --timeout $(TIMEOUT) \
	--qemu $(call tool,QEMU,qemu-system-x86_64) --append '$(APPEND)'

.PHONY: demo
demo: machine
	@$(run) --log $(out)/demo.log --transcript -- kfi-demo

# Tests that say that they may run beside each other; see kfi-suite --help.
JOBS ?= 2

# In the fast kernel, in QEMU, it is known what is skipped; nothing else may be. When one round of random
# requests is made again, the tests of the others are.
may_skip = $(if $(findstring --fuzz-replay,$(ARGS)),,$(if \
	$(filter qemu-fast,$(VEHICLE)-$(KIND)),--may-skip qemu-test/skipped))

.PHONY: test
test: machine
	@$(run) $(may_skip) --log $(out)/test.log -- kfi-suite --jobs $(JOBS) $(ARGS)
	@$(if $(ARGS)$(filter-out qemu,$(VEHICLE)),,$(network) --log $(out)/test-machines.log -- \
		kfi-net --seconds 2 $(few_scenarios))

# Two machines, if nothing else is asked for.
few_scenarios := calm bad-cables connections-reset killed

# All of it over TCP, inside of one kernel: each NIC reaches the others, and itself, by way of the
# network. Without what is about something else: see Documentation/testing.md. Then two and four
# machines, if nothing else is asked for.
net_parameters := kfi_soft.address=127.0.0.1,127.0.0.2 kfi_soft.loopback=0
net_lacking := info/everything info/names info/destination info/addresses-in-hints \
	message/full-completion-queue model/one-thread

.PHONY: test-net
test-net: TIMEOUT = $(if $(filter debug kcsan,$(KIND)),10800,3600)
test-net: machine
	@$(run) --append '$(APPEND) $(net_parameters)' --log $(out)/test-net.log -- \
		kfi-suite --jobs $(JOBS) $(addprefix -x ,$(net_lacking)) $(ARGS)
	+@$(if $(ARGS),,$(MAKE) test-machines MACHINES=2 && $(MAKE) test-machines MACHINES=4)

.PHONY: test-debug
test-debug:
	+@$(MAKE) test KIND=debug ARGS='--scale 0.1 --time-limit 600 $(ARGS)'

# --- several machines on one network ------------------------------------------
# Each is 10.0.3.N for its kernel and for kfi_soft. They share the host's CPUs, so messages wait for
# their receives longer than in one machine, and in a slow kernel machines for each other. To read from
# ACPI which interrupt a device has may take a slow kernel longer than it lets that take.

MACHINES ?= 2
machines_parameters = acpi=noirq $(filter-out kfi_soft.rnr_timeout=%,$(APPEND)) \
	kfi_soft.address=10.0.3.%n kfi_soft.rnr_timeout=60000 $(if $(filter debug kcsan,$(KIND)),kfi_soft.peer_timeout=20000)
network = $(call tool,PYTHON,python3) qemu-test/machines --kernel "$$(scripts/kernel --print $(KIND))" \
	--image $(image_file) --machines $(MACHINES) --timeout $(TIMEOUT) \
	--qemu $(call tool,QEMU,qemu-system-x86_64) --append '$(machines_parameters)'

.PHONY: test-machines
test-machines: machine
	@$(network) --log $(out)/machines-$(MACHINES).log -- kfi-net $(ARGS)

.PHONY: demo-net
demo-net: machine
	@$(network) --log $(out)/demo-net.log --transcript -- kfi-net --demo

# --- deep tests ---------------------------------------------------------------
# Every run is one machine, and each goes on although one before has failed; DEEP_JOBS of them run at a
# time. Unit tests of the modules run whenever these are loaded.
DEEP_JOBS ?= 1
# For each test.
FUZZ_SECONDS ?= 90
SOAK_SECONDS ?= 75
# Of make fuzz, behind those, and how many faults of make mutants at the end, of which a few may survive as tests do not
# look at the time. None if it is empty.
DEEP_LEARNING_SECONDS ?= 600
DEEP_MUTANTS ?= 20
DEEP_SEED ?= 2
DEEP_SURVIVORS ?= 6
# The longest ones first.
deep_runs := suite network driver trust fuzz load soak
deep_suite := --scale 0.1 --jobs $(JOBS) -x network/ -x fuzz/ -x failslab/ -x lifetime/ -x load/
deep_network := --scale 0.1 --jobs $(JOBS) network/
deep_fuzz := --fuzz-seconds $(FUZZ_SECONDS) fuzz/
deep_trust := --scale 0.1 failslab/ lifetime/
deep_load := load/
deep_driver := module/network-driver
# For a test, in the debug kernel, on a busy machine.
deep_limit := 1800
deep_driver_limit := 3600
deep_soak := --soak $(SOAK_SECONDS) soak/
deep_mutants = --count $(DEEP_MUTANTS) --seed $(DEEP_SEED) --survivors $(DEEP_SURVIVORS) --without order \
	--jobs $(DEEP_JOBS)
# 10,000 works in each domain. A parameter is taken once.
deep_load_run = --append '$(filter-out kfi_soft.pending=%,$(APPEND)) kfi_soft.pending=16384'
# All transactions of the network driver, between two NICs and within one.
deep_driver_run = --append '$(filter-out kfi_lnd.transactions=%,$(APPEND)) kfi_lnd.transactions=100000'

# For each of the tests of the wire's parser, on this machine: ten million frames.
WIRE_FRAMES ?= 2000000

.PHONY: deep-wire
deep-wire:
	@echo 'kfabric: frames of the wire'
	@cd qemu-test/guest && $(own_rustc) BINDGEN=$(call tool,BINDGEN,bindgen) KFI_WIRE_CASES=$(WIRE_FRAMES) \
		CARGO_TARGET_DIR=$(top)/build/guest \
		$(call tool,CARGO,cargo) test --quiet --locked --release --package kfi-wire

.PHONY: test-deep
test-deep:
	+@$(MAKE) KIND=debug machine
	+@failed=; \
	$(MAKE) deep-wire || failed="$$failed wire"; \
	$(MAKE) --keep-going --jobs=$(DEEP_JOBS) KIND=debug $(if $(filter 1,$(DEEP_JOBS)),,--output-sync=target) \
		$(addprefix deep-,$(deep_runs)) || failed="$$failed debug"; \
	echo 'kfabric: driver, fast'; \
	$(MAKE) KIND=fast machine deep-driver || failed="$$failed driver (fast)"; \
	[[ -z '$(DEEP_LEARNING_SECONDS)' ]] || { echo 'kfabric: fuzzing that learns'; \
		$(MAKE) FUZZ_SECONDS='$(DEEP_LEARNING_SECONDS)' fuzz || failed="$$failed learning"; }; \
	[[ -z '$(DEEP_MUTANTS)' ]] || { echo 'kfabric: faults made by rules'; \
		$(MAKE) mutants ARGS='$(deep_mutants)' || failed="$$failed mutants"; }; \
	[[ -z $$failed ]] || { echo "failed:$$failed"; exit 1; }

$(addprefix deep-,$(deep_runs)): TIMEOUT = 7200
.PHONY: $(addprefix deep-,$(deep_runs))
$(addprefix deep-,$(deep_runs)): deep-%:
	@echo 'kfabric: $*'
	@$(run) $(deep_$*_run) --log $(out)/deep-$*.log -- \
		kfi-suite --time-limit $(or $(deep_$*_limit),$(deep_limit)) --slowest 10 $(deep_$*)

# --- Lustre's network ---------------------------------------------------------
# LUSTRE is a git checkout, a bare repository (LUSTRE_REF: another commit than HEAD), a folder or a
# tarball of lustre-release. On a debug kernel lnet_selftest would be told off for freeing works
# that are queued. Messages wait for receives longer than by default: machines are slow, and a packet
# that is late is to be there when somebody else wants its tag.

lustre_targets := test-lustre test-lustre-net test-lustre-machines demo-lustre shell-lustre
lustre_rnr_timeout = $(if $(filter debug,$(KIND)),10000,3000)
.PHONY: $(lustre_targets) lustre-image
$(lustre_targets): image_file = $(out)/lustre.gz
$(lustre_targets): APPEND = kfi_soft.kcxi=1 kfi_soft.rnr_timeout=$(lustre_rnr_timeout) \
	swiotlb=2048,force $(if $(filter debug,$(KIND)),no_debug_objects)
$(lustre_targets): TIMEOUT = $(if $(filter debug,$(KIND)),9000,3600)

test-lustre: lustre-machine
	@$(run) --known qemu-test/lustre/known --log $(out)/test-lustre.log -- /extra/tests $(ARGS)

# With NICs that reach each other over TCP, inside of one kernel.
test-lustre-net: lustre-machine
	@$(run) --append '$(APPEND) $(net_parameters)' --known qemu-test/lustre/known \
		--log $(out)/test-lustre-net.log -- /extra/tests $(or $(ARGS),bvec/)

# Two machines on one network. Requests that are late are gone before transfers are given up.
test-lustre-machines: lustre_rnr_timeout = 20000
test-lustre-machines: machines_parameters = acpi=noirq $(APPEND) kfi_soft.address=10.0.3.%n \
	$(if $(filter debug kcsan,$(KIND)),kfi_soft.peer_timeout=20000)
test-lustre-machines: override MACHINES = 2
test-lustre-machines: lustre-machine
	@$(network) --known qemu-test/lustre/known --log $(out)/test-lustre-machines.log -- \
		/extra/machines $(ARGS)

shell-lustre: lustre-machine
	@$(run) --known qemu-test/lustre/known --log $(out)/shell-lustre.log --shell

demo-lustre: lustre-machine
	@$(run) --known qemu-test/lustre/known --log $(out)/demo-lustre.log --transcript -- /extra/demo

.PHONY: lustre-machine
lustre-machine:
	@[ -e '$(LUSTRE)' ] || { echo 'make: LUSTRE=... has to be a checkout, a bare repository or a' \
		'tarball of lustre-release; see Documentation/lustre.md'; false; }
	+@$(MAKE) machine
	+@$(MAKE) KDIR="$$(scripts/kernel --print $(KIND))" MO=$(out)/modules lustre-image

lustre-image:
	@built=$$($(call tool,PYTHON,python3) qemu-test/lustre/build --lustre '$(LUSTRE)' \
		--ref '$(LUSTRE_REF)' --kernel '$(KDIR)' --kfabric $(MO) --out build/lustre $(kbuild_args)) && \
	qemu-test/image --output $(out)/lustre.gz --modules $(out)/image/modules \
		--programs $(out)/image/programs --busybox $(call tool,BUSYBOX,busybox) \
		--extra "$$built"/*.ko "$$built"/{lnetctl,lst,about} qemu-test/lustre/{common,tests,demo,machines}

# In a copy of this tree; ARGS are names of mutations.
.PHONY: mutations
mutations:
	@$(call tool,PYTHON,python3) qemu-test/mutations.py $(ARGS)

# Made by rules, in copies in build/mutants; goes on where it was cut off.
.PHONY: mutants
mutants:
	@scripts/setup --quiet
	@scripts/kernel uml >/dev/null
	@$(call tool,PYTHON,python3) qemu-test/mutants.py $(ARGS)

# For it: modules without programs, the suite with modules that are there, and the tests of what is compiled for
# user space, too.
.PHONY: test-host
test-host:
	@cd qemu-test/guest && $(own_rustc) BINDGEN=$(call tool,BINDGEN,bindgen) \
		CARGO_TARGET_DIR=$(top)/build/guest-check \
		$(call tool,CARGO,cargo) test --quiet --locked --package $(PACKAGE)

.PHONY: only-modules
only-modules:
	@scripts/setup --quiet
	@scripts/kernel $(KIND) >/dev/null
	+@$(MAKE) KDIR="$$(scripts/kernel --print $(KIND))" MO=$(out)/modules quiet-modules

.PHONY: suite-of-modules
suite-of-modules: make-image
	@$(run) --log $(out)/test.log -- kfi-suite --jobs $(JOBS) $(ARGS)

# Which lines of the modules in Rust are reached, in all of these runs together: suite, machines (two, over
# TCP), failing (allocations, in the debug kernel, whose unit tests do not run). It tells also if tests fail,
# which they may where all takes longer.
COVERAGE_RUNS ?= suite
coverage_runs := suite machines failing
coverage_kind = $(if $(filter failing,$(1)),debug,fast)
coverage_logs_suite := build/coverage/test.log
coverage_logs_machines := build/coverage/machines-2.log.1 build/coverage/machines-2.log.2
coverage_logs_failing := build/coverage-debug/failing.log
coverage_fast := $(foreach name,$(filter-out failing,$(COVERAGE_RUNS)),$(coverage_logs_$(name)))
coverage_debug := $(if $(filter failing,$(COVERAGE_RUNS)),$(coverage_logs_failing))
# What the fast kernel skips for want of failing allocations: see qemu-test/skipped.
coverage_failing := --scale 0.1 --time-limit 1800 failslab/ lifetime/failing- network/no-memory-for-requests \
	fuzz/without-memory memory/

.PHONY: coverage
coverage:
	@[ -n '$(COVERAGE_RUNS)' -a -z '$(filter-out $(coverage_runs),$(COVERAGE_RUNS))' ] || \
		{ echo 'make: COVERAGE_RUNS has to be some of $(coverage_runs)'; false; }
	+@failed=0; $(foreach name,$(COVERAGE_RUNS),rm -f $(coverage_logs_$(name)); \
	$(MAKE) VEHICLE=qemu KIND=$(call coverage_kind,$(name)) KFI_COVERAGE=1 coverage-$(name) || failed=$$?; )\
	$(call tool,PYTHON,python3) qemu-test/line_coverage.py --output build/coverage --llvm=$(call tool,LLVM,1) \
		$(if $(coverage_fast),--build build/coverage/modules $(coverage_fast)) \
		$(if $(coverage_debug),--build build/coverage-debug/modules $(coverage_debug)) && \
	echo 'kfabric: lines that were not reached are in build/coverage/report.txt' || failed=$$?; \
	exit $$failed

.PHONY: $(addprefix coverage-,$(coverage_runs))
coverage-suite: machine
	@$(run) --log $(coverage_logs_suite) -- kfi-suite --jobs $(JOBS) $(ARGS)

coverage-machines: override MACHINES = 2
coverage-machines: machine
	@$(network) --log build/coverage/machines-2.log -- kfi-net

coverage-failing: machine
	@$(run) --append '$(APPEND) kunit.filter_glob=none' --log $(coverage_logs_failing) -- \
		kfi-suite $(coverage_failing)

# Random requests, of which those that lead to code where no others do are kept and made more of. Adds
# what is new to those that were kept before, however it ends.
.PHONY: fuzz
fuzz:
	+@$(MAKE) VEHICLE=qemu KIND=fast KFI_COVERAGE=1 run-fuzz

.PHONY: run-fuzz
run-fuzz: machine
	@failed=0; $(run) --timeout $$(($(FUZZ_SECONDS) + $(TIMEOUT))) --may-skip /dev/null \
		--log $(out)/fuzz.log -- \
		kfi-suite --fuzz-seconds $(FUZZ_SECONDS) $(ARGS) fuzz/learning || failed=$$?; \
	$(call tool,PYTHON,python3) qemu-test/corpus.py $(out)/fuzz.log; \
	exit $$failed

.PHONY: shell
shell: machine
	@$(run) --log $(out)/shell.log --shell

# --- benchmarks ---------------------------------------------------------------
# At native speed unless QEMU is asked for. The last line of the file of results is
# written when the guest has ended.

bench := build/bench
kfi_bench := build/guest/x86_64-unknown-linux-gnu/release/kfi-bench
bench_vehicle := $(if $(filter command line environment,$(origin VEHICLE)),$(VEHICLE),uml)

.PHONY: bench
bench:
	+@$(MAKE) VEHICLE=$(bench_vehicle) TIMEOUT=$(if $(filter qemu,$(bench_vehicle)),7200,3600) \
		run-bench

# Tables and plots are made of what there is; it fails if that is not all that was asked for, or if the
# machine did not end well, which nobody learns of through the pipe but by the last line.
.PHONY: run-bench
run-bench: machine
	@mkdir -p $(bench)
	@{ status=0; $(run) --log $(bench)/$(VEHICLE).log --transcript -- kfi-bench run $(ARGS) || \
			status=$$?; \
		echo "{\"status\":$$status}"; } | \
		{ status=0; $(kfi_bench) collect --vehicle $(VEHICLE) --output $(bench)/$(VEHICLE).jsonl \
			2>$(bench)/failures || status=$$?; \
		echo $$status >$(bench)/status; }
	+@$(MAKE) bench-report
	@cat $(bench)/failures >&2; exit "$$(cat $(bench)/status)"

# Of user-mode Linux, with what there is of QEMU beside it; of QEMU alone if there is only that.
.PHONY: bench-report
bench-report:
	@[ -e $(bench)/uml.jsonl ] || [ -e $(bench)/qemu.jsonl ] || { \
		echo 'make: nothing was measured yet: make bench' >&2; false; }
	@if [ -e $(bench)/uml.jsonl ]; then \
		$(kfi_bench) report $(bench)/uml.jsonl --output $(bench) \
			$$([ ! -e $(bench)/qemu.jsonl ] || echo --qemu $(bench)/qemu.jsonl); \
	fi
	@if [ -e $(bench)/qemu.jsonl ]; then \
		$(kfi_bench) report $(bench)/qemu.jsonl --output $(bench)/qemu; \
	fi
	@echo 'kfabric: results, tables and plots are in $(bench), all of it in index.html there'

.PHONY: bench-compare
bench-compare: guest
	@$(kfi_bench) compare $(OLD) $(NEW)

.PHONY: bench-table
bench-table: guest
	+@$(MAKE) bench-report
	@$(kfi_bench) insert $(bench) Documentation/benchmarks.md

# How long interrupts are off. With instructions for time it does not depend on the host; one CPU
# is what they are counted of. Messages wait until all is prepared.
.PHONY: irqsoff
irqsoff:
	+@$(MAKE) VEHICLE=qemu KIND=irqsoff APPEND=kfi_soft.rnr_timeout=2000 run-irqsoff

.PHONY: run-irqsoff
run-irqsoff: machine
	@$(run) --icount --cpus 1 --log $(out)/irqsoff.log --transcript -- kfi-bench irqsoff $(ARGS)

# --- checks -------------------------------------------------------------------

crates := rust/kfabric/kfabric.rs rust/kfi_soft/kfi_soft.rs rust/kfi_shim/kfi_shim.rs \
	rust/kfi_bench/kfi_bench.rs qemu-test/second/kfi_second.rs qemu-test/second/cases.rs \
	qemu-test/small_provider/kfi_small.rs qemu-test/rust_consumer/kfi_rust_consumer.rs \
	qemu-test/rootless/kfi_rootless.rs
c_files = $(shell git ls-files '*.c' '*.h')

.PHONY: check
check:
	@scripts/setup --quiet
	@scripts/kernel fast >/dev/null
	+@$(MAKE) KDIR="$$(scripts/kernel --print fast)" MO=build/check run-checks

.PHONY: run-checks
run-checks: check-kernel
	@echo 'check: style'
	@scripts/check-style
	@echo 'check: formatting'
	@$(RUSTFMT) --check --config-path $(KFI_KERNEL_SOURCE)/.rustfmt.toml $(crates)
	@cd qemu-test/guest && $(call tool,CARGO,cargo) fmt --check
	@echo 'check: C style'
	@scripts/check-c $(KFI_KERNEL_SOURCE)
	@scripts/check-litmus $(KFI_KERNEL_SOURCE)
	@echo 'check: lints, ABI assertions'
	@mkdir -p build
	+@$(call quietly,$(kbuild) KFI_TESTS=1 CLIPPY=1 KRUSTFLAGS=-Dwarnings KCFLAGS=-Werror modules)
	@echo 'check: what is installed'
	+@$(call quietly,scripts/check-install $(CURDIR)/build/check-install $(KDIR) \
		$(MAKE) KDIR=$(KDIR) MO=$(MO) CLIPPY=1 KRUSTFLAGS=-Dwarnings KCFLAGS=-Werror)
	@echo 'check: documentation, what must not compile'
	+@$(call quietly,$(kbuild) KFI_RUSTDOC=1 KFI_CASES=1 KCFLAGS=-Werror modules)
	@echo 'check: programs'
	@cd qemu-test/guest && export $(own_rustc) BINDGEN=$(call tool,BINDGEN,bindgen) \
		CARGO_TARGET_DIR=$(top)/build/guest-check && \
		$(call tool,CARGO,cargo) clippy --quiet --locked --all-targets -- -Dwarnings && \
		$(call tool,CARGO,cargo) test --quiet --locked
	+@$(MAKE) $(example)
	@echo 'check: test tools'
	@cd qemu-test && $(call tool,PYTHON,python3) -m unittest --quiet
	@echo 'check: all passed'

# Below build, with dkms as it is installed here.
.PHONY: check-dkms
check-dkms:
	@scripts/setup --quiet
	@scripts/kernel fast >/dev/null
	@scripts/check-dkms build/dkms "$$(scripts/kernel --print fast)"

# Of the kernel only the source is needed. Without herd7, only the names.
.PHONY: litmus
litmus:
	@scripts/check-litmus "$$(scripts/kernel --source)"

.PHONY: coverage-map
coverage-map:
	@$(call tool,PYTHON,python3) qemu-test/coverage_map.py

quietly = { $(1); } >build/check.log 2>&1 || { cat build/check.log; false; }

.PHONY: clean
clean:
	rm -rf build
