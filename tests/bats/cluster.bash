# shellcheck shell=bash
# run_cluster.sh in the tests: typed here, on a host of the lab, and for the two hosts of the lab.

# cluster WORD...: run_cluster.sh with the stub trainer on CPU
cluster() {
  launch run_cluster.sh --config config.yaml "$@"
}

# cluster_on HOST WORD...: the same on a host of the lab
cluster_on() {
  stubbed run_cluster.sh --device_target CPU --config config.yaml "${@:2}"
  on "$1" "${STUBBED[@]}"
}

# hosts SLOTS: a hostfile of the lab's two hosts
hosts() {
  printf '10.77.0.%s slots=%d\n' 1 "$1" 2 "$1" >hosts
}

# cluster_refused STATUS PATTERN WORD...: the command is refused, with one line, and does nothing
cluster_refused() {
  refused "$1" "$2" cluster "${@:3}"
}

# lab_of_two SLOTS: the lab, mpirun, and a hostfile
lab_of_two() {
  need mpirun
  lab_up 2
  hosts "$1"
}
