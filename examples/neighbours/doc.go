// Neighbours prints how many other pods are on the node of a pod, whenever the pod changes. It is the program that
// README.md shows and runs.
package main
