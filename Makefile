# Shortcuts; README.md names the two commands that matter.
.PHONY: build demo test check fuzz

build:
	go build -o skua ./cmd/flightsql

demo:
	go run ./cmd/flightsql demo

# Needs nothing but Go.
test:
	go test ./...

# All tests with all clients; installs what they need.
check:
	integration/run

fuzz:
	integration/fuzz 100000x
