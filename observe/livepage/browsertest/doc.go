// Package browsertest tests package livepage in a Chromium: against leat demo, the other commands and the examples, and
// against programs in the process of the test. make page-test runs it. The environment variable CHROMIUM may name the
// browser.
//
//	go test -args -shots /tmp  # also writes screenshots
package browsertest
