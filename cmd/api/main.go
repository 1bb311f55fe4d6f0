// Command api serves the HTTP API. Its settings are environment variables; docs/settings describes them.
package main

import "example.com/orders/internal/boot"

func main() { boot.Main("orders-api", boot.RunAPI) }
