//go:build !linux || !(amd64 || arm64)

package frames

import "net"

// quick returns c: this system has no way to cheaper reads and writes.
func quick(c net.Conn) net.Conn { return c }
