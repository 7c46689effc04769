package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The bounds of a connection.
const (
	bodyTime  = 10 * time.Second
	idleTime  = 2 * time.Minute  // above the minute and a half of many clients
	writeTime = 90 * time.Second // above the longest wait and the time of a call
	maxHeader = 16 << 10
)

// NewServer returns a server of the HTTP API. Requests outlive their connections as
// long as base.
func NewServer(base context.Context, cfg Config, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: newHandler(cfg),
		// A client opens connections ahead of need. If the server ends a connection just as
		// the client sends its first request, nobody knows whether the request was executed.
		ReadHeaderTimeout: idleTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
