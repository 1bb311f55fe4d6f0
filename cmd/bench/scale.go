package main

import "context"

type scale struct{}

func (r *report) scaleLines() string { return "" }

func (b *bench) measureScale(ctx context.Context, r *report) error { return nil }
