// Command leat shows what leat does, serves a Kubernetes API from memory, and watches a cluster.
//
//	leat demo            the whole pipeline at work, without a cluster
//	leat serve           a Kubernetes API from memory
//	leat watch           list and watch a resource of a cluster, a line an event
//	leat wait            until objects of a cluster are made, gone, Ready or as a field says
//	leat api-resources   what a cluster can be asked for
package main
