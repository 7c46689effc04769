//go:build !linux || !(amd64 || arm64)

package frames

import "net"

// quick returns a connection whose reads and writes cost less, if there is a way to that.
func quick(c net.Conn) net.Conn { return c }
