// Package fake has sites for the tests of an app manager. They are served over pipes in
// simulated time, and answer as a test tells them. The product does not import it.
package fake
