// Command worker works the jobs of the outbox. Its settings are environment variables; docs/settings describes them.
package main

import (
	"example.com/orders/internal/boot"
	"example.com/orders/internal/boot/process"
)

func main() { process.Serve("orders-worker", process.Ready(), boot.RunWorker) }
