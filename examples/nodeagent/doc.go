// Nodeagent is an agent that runs on every node of a cluster: it knows which pod of its node has an IP address, and
// prints each change. docs/agent.md explains it, and manifest.yaml runs it as a DaemonSet.
package main
