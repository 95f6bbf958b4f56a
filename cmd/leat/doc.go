// Command leat shows what leat does, serves a Kubernetes API from memory, and watches a cluster.
//
//	leat demo            show the whole pipeline at work, without a cluster
//	leat serve           serve a Kubernetes API from memory
//	leat watch           list and watch a resource of a cluster, and print a line for each event
//	leat record          record what a server sends about resources, to a file
//	leat replay          serve a recording as a Kubernetes API
//	leat show            show what a recording has
//	leat explore         show step by step how a promise breaks without one of leat's rules
package main
