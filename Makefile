# fullbore: build, test, measure. `make test` is all that CI runs.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)
LDFLAGS  = -s -w -X github.com/fullbore-net/fullbore/internal/cli.Version=$(VERSION)
TOOLS    = $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 60s
JOBS    ?= 1# scenarios of `make truth` at a time; two cores that nobody else uses bear 2
export GOFLAGS = -buildvcs=false
# SQLite is Go code made from C: optimising it takes minutes for each system and mode, and what is tested here is ours.
QUICK    = GOFLAGS="$(GOFLAGS) -gcflags=modernc.org/...=-N"
RACE     = $(QUICK) GORACE=atexit_sleep_ms=50 $(GO) test -race -shuffle on -vet=off -timeout 15m

.PHONY: build windows run test peers lint unit interop script cross bench fuzz truth ndr wine clean generate man

build: ## bin/fullbore
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/fullbore ./cmd/fullbore

# The linker takes the .syso files beside main: made anew for each version, never committed.
windows: ## dist/windows-{amd64,arm64}/fullbore.exe with version and manifest inside
	@set -e; for a in amd64 arm64; do \
		$(GO) run ./packaging/winres -arch $$a -version '$(VERSION)' -out cmd/fullbore/rsrc_windows_$$a.syso; \
		GOOS=windows GOARCH=$$a CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o dist/windows-$$a/fullbore.exe ./cmd/fullbore; \
		$(GO) run ./packaging/winres -read dist/windows-$$a/fullbore.exe | grep -q 'level="asInvoker"'; \
		echo "dist/windows-$$a/fullbore.exe"; done

run: build ## measure this machine against itself
	bin/fullbore test self -t 3

# Fast things first: what fails should fail early.
test: peers lint cross unit interop ## everything that CI runs

peers: ## install the real programs that the tests talk to (Debian, root)
	sh test/peers.sh

lint: ## gofumpt, vet, staticcheck, layers
	@out=$$($(TOOLS) gofumpt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofumpt would change:"; echo "$$out"; exit 1; fi
	$(QUICK) $(GO) vet ./...
	$(QUICK) $(TOOLS) staticcheck ./...
	$(QUICK) $(GO) test ./internal/archtest

cross: ## every system that must compile
	@set -e; for t in windows/amd64 windows/arm64 darwin/amd64 darwin/arm64 freebsd/amd64 freebsd/arm64 linux/arm64; do \
		echo "build $$t"; GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(QUICK) $(GO) build -o /dev/null ./cmd/fullbore; done
	GOOS=windows CGO_ENABLED=0 $(QUICK) $(GO) vet ./...

# The detector waits a second at each program's end for races of goroutines that nobody waits for; the tests of
# the lab end some fifty. Tests were vetted by lint. The lab measures how late it is itself: beside other
# tests it finds the machine unfit, and shows nothing.
unit: ## all packages, with the race detector, in random order
	$(RACE) -p 3 $$($(GO) list ./... | grep -v -e /test/ -e '/internal/lab$$')
	$(RACE) ./internal/lab

interop: build ## whole programs against real peers
	FULLBORE=$(CURDIR)/bin/fullbore GO=$(GO) $(QUICK) sh test/whole.sh
	@if [ -d dist/browser ]; then echo "pictures of the pages: dist/browser"; fi

fuzz: ## each decoder for FUZZTIME
	sh test/fuzz.sh $(FUZZTIME)

bench: build ## pairs against each peer binary that is found; table into docs/benchmarks.md
	$(GO) run ./test/bench -fullbore bin/fullbore -out docs/benchmarks.md

# A program without a version of its own: what was played stays valid until the code changes. It goes on where it was stopped.
truth: ## every lab scenario live, in fit runs; table into docs/verdicts.md (root)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/truth/fullbore ./cmd/fullbore
	$(GO) run ./test/truth -fullbore bin/truth/fullbore -out docs/verdicts.md -jobs $(JOBS)

ndr: ## searches for the loss-free rate over paths that ten seeds draw; table into docs/ndr.md (root)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/truth/fullbore ./cmd/fullbore
	$(GO) run ./test/ndr -fullbore bin/truth/fullbore -out docs/ndr.md

generate: ## docs that come from tables: compat, schema, man pages
	$(GO) test ./internal/cli/compat/... -update

man: ## man pages into dist/man1
	$(GO) run ./packaging/man dist/man1

clean:
	rm -rf bin dist cmd/fullbore/*.syso
