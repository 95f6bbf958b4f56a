// Package browsertest tests package livepage in a Chromium, against leat demo. make page-test runs it. The environment
// variable CHROMIUM may name the browser.
//
//	go test -args -shots /tmp  # also writes screenshots
package browsertest
