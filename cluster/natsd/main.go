// Natsd is nats-server with election times for servers that are near each other: see docs/quorum-queues.md.
//
// `make natsd` builds it with two patches: async-flush.patch, of which docs/adr/0040-natsd-writes-a-replicated-message-once.md
// tells, and damaged-files.patch, of which docs/quorum-queues.md does.
//
// The times are variables of the server that it neither exports nor reads from its configuration; the linker sets them
// before anything runs. A version in which one is missing does not link. Options and files are those of nats-server.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
)

//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
var hbInterval time.Duration

func main() {
	minElectionTimeout, maxElectionTimeout = 1000*time.Millisecond, 1600*time.Millisecond
	hbInterval = 400 * time.Millisecond
	flags := flag.NewFlagSet("natsd", flag.ExitOnError)
	options, err := server.ConfigureOptions(flags, os.Args[1:], server.PrintServerAndExit, flags.PrintDefaults, server.PrintTLSHelpAndDie)
	check(err)
	if options.CheckConfig {
		fmt.Fprintf(os.Stderr, "natsd: configuration file %s is valid\n", options.ConfigFile)
		return
	}
	server.RedactArgs(os.Args) // before anything shows them
	running, err := server.NewServer(options)
	check(err)
	running.ConfigureLogger()
	check(server.Run(running))
	running.WaitForShutdown()
}

func check(err error) {
	if err != nil {
		server.PrintAndDie(fmt.Sprintf("natsd: %s", err))
	}
}
