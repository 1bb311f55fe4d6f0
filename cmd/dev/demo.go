package main

import "context"

func runDemo(context.Context) error { return nil }
