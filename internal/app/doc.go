// Package app holds the use cases: the commands and queries of the service, the pipeline that carries each command
// through its stages, and the ports that infrastructure implements.
//
// It deals in commands and results. HTTP and SQL shapes stay out: an answer that is kept for replay passes through
// here as opaque bytes.
package app
