// Command worker works the jobs of the outbox. Its settings are environment variables; docs/settings describes them.
package main

import "example.com/orders/internal/boot"

func main() { boot.Main("orders-worker", boot.RunWorker) }
