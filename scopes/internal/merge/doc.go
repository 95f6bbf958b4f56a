// Package merge writes the changes of several list and watch streams into one DeltaFIFO. It decides what package scopes
// needs beyond one stream: which stream's state of an object counts, whether an object has moved or is deleted, and
// which version each namespace has reached.
package merge
