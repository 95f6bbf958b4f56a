// Fleet runs several replicas of the deployment example, which divide namespaces among themselves, and shows which
// replica has which namespaces. It can kill a replica, add one, and start a rollout. See README.md.
package main
