# A real Slurm of a few nodes on this machine, for the tests of one file.

# slurm_up [NODES]: for setup_file; where there is none, WHY_NOT says why.
slurm_up() {
  SLURM=$BATS_FILE_TMPDIR/slurm
  if ! WHY_NOT=$(bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" up "$SLURM" "$@" 2>&1); then
    WHY_NOT=${WHY_NOT:-"no Slurm here"}
  fi
  export SLURM WHY_NOT SLURM_CONF=$SLURM/slurm.conf
}

# slurm_down: for teardown_file.
slurm_down() {
  bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" down "$SLURM"
}
