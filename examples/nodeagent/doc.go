// Nodeagent is an agent that runs on every node of a cluster: it prints the address of each pod of its node, and prints
// it again after each change. docs/agent.md explains it, and manifest.yaml runs it as a DaemonSet.
package main
