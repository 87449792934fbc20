# For the tests of --import_once: a module and a program that import and wait.

# held: whoever was to wait is there
held() {
  [[ -e $STUB_OUT/held ]]
}

# hold_at import|run: program.py imports the module heavy; at the import, or when the ranks run, it waits
hold_at() {
  local -r hold='import os, time; open(os.path.join(os.environ["STUB_OUT"], "held"), "w").close(); time.sleep(600)'
  : >heavy.py
  printf 'import heavy\n%s\n' "$hold" >program.py
  [[ $1 == run ]] || { printf 'import heavy\n' >program.py && printf '%s\n' "$hold" >heavy.py; }
}
