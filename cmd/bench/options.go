package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// options say what to measure and for how long.
type options struct {
	seconds    float64 // of one measurement
	rounds     int
	clients    []int
	samples    int // orders whose time to the provider's ledger is measured
	skus       int
	noBaseline bool
	scale      bool
	rows       int // that measureScale loads
	expired    int // keys that are purged under load
	statements bool
	limit      time.Duration
	json       string
	page       string
	profile    string
	command    string // makes the same figures; shown on the page
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var clients string
	var quick bool
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(usage)
	f.Float64Var(&o.seconds, "seconds", 4, "how long one measurement takes; those of reads take half of it")
	f.IntVar(&o.rounds, "rounds", 3, "how often each measurement is made; medians are reported")
	f.StringVar(&clients, "clients", "1,8,32", "connections that send requests at once, a column each")
	f.IntVar(&o.samples, "samples", 40, "orders whose time to the provider's ledger is measured, on an idle system")
	f.IntVar(&o.skus, "skus", 10_000, "products that the orders are spread over")
	f.BoolVar(&o.noBaseline, "no-baseline", false, "measure without pgbench")
	f.BoolVar(&o.scale, "scale", false, "measure with -rows finished orders loaded, and while -expired keys are purged")
	f.IntVar(&o.rows, "rows", 5_000_000, "with -scale: orders, keys and finished jobs to load")
	f.IntVar(&o.expired, "expired", 1_000_000, "with -scale: expired keys to purge")
	f.BoolVar(&o.statements, "statements", false, "report what PostgreSQL spends on each statement (slows it down a little)")
	f.DurationVar(&o.limit, "limit", time.Hour, "end with an error after this time")
	f.StringVar(&o.json, "json", "", "write the figures to this file")
	f.StringVar(&o.page, "write", "", "rewrite the generated section of this page, and the chart beside it")
	f.StringVar(&o.profile, "profile", "", "write a CPU profile of the API under place-order to this file")
	f.BoolVar(&quick, "quick", false, "a minute for everything: for a look whether it works, not for figures")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.command = command(f)
	if quick && o.page != "" {
		return o, errors.New("-quick figures are not for -write")
	}
	if quick {
		o.seconds, o.rounds, o.samples = 0.5, 1, 5
	}
	for word := range strings.SplitSeq(clients, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 1000 {
			return o, fmt.Errorf("-clients: %q is not a number of 1 to 1000", word)
		}
		o.clients = append(o.clients, n)
	}
	return o, o.check()
}

// command is the command line that makes the same figures, without the names of output files.
func command(f *flag.FlagSet) string {
	target := "make bench"
	var others []string
	f.Visit(func(set *flag.Flag) {
		switch set.Name {
		case "scale":
			target = "make bench-scale"
		case "json", "write", "profile":
		default:
			others = append(others, "-"+set.Name+"="+set.Value.String())
		}
	})
	if others == nil {
		return target
	}
	return fmt.Sprintf("%s BENCH=%q", target, strings.Join(others, " "))
}

func (o options) check() error {
	switch {
	case o.seconds <= 0 || o.rounds < 1 || o.samples < 1:
		return errors.New("-seconds, -rounds and -samples must be positive")
	case o.skus < maxLines || o.skus > skuSpace:
		return fmt.Errorf("-skus must be %d to %d", maxLines, skuSpace)
	case o.rows < actors || o.expired < 1:
		return fmt.Errorf("-rows must be at least %d and -expired at least 1", actors)
	}
	return nil
}

// writing and short are how long measurements of writes and of reads take.
func (o options) writing() time.Duration { return time.Duration(o.seconds * float64(time.Second)) }

func (o options) short() time.Duration { return o.writing() / 2 }
