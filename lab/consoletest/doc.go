// Package consoletest drives the web console in a browser, against a cluster of five sites
// under load. It tries what a reader sees and does: pages, keys, roles, a limit changed, a site
// killed. The units of the pages are tested beside their sources, in appmgr/console/web.
//
// The tests need Chromium, and what make console-check installs. They run only if the
// environment names a folder for screenshots: make console-test.
package consoletest
