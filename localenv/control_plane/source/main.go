// The control plane of the local environment as one multi-call binary: etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager and kubectl, chosen by
// the name under which the binary is called (or by its first argument).
//
// One binary instead of five saves a gigabyte of linking and lets the processes
// share their text pages.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := commands[name]; !known && name != "etcd" && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if command, known := commands[name]; known {
		os.Exit(cli.Run(command()))
	}
	fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|kube-scheduler|kube-controller-manager|kubectl [flags]")
	os.Exit(2)
}
