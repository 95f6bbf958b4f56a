// Package helm tests Helm. It has only tests.
package helm
