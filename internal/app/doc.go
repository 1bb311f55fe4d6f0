// Package app holds the use cases: the commands and queries of the service, the pipeline that carries each command
// through its stages, and the ports that infrastructure implements.
//
// It contains no HTTP and no SQL. A response that is stored for replay passes through this package as opaque bytes.
package app
