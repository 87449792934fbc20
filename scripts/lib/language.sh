# shellcheck shell=bash
# Chooses the language of the messages: what is in $"..." is Chinese in the files that are read after this one, if
# the user reads Chinese. bash translates such a text when it reads it, from hccl_tools/locale.
#
# LAUNCH_LANG: zh or en, for all programs of the launch; from --lang, or from the caller's locale.

# language::_of_locale: zh or en in REPLY, by the rules of GNU gettext, in which LANGUAGE counts unless the locale is C.
language::_of_locale() {
  local locale=${LC_ALL:-${LC_MESSAGES:-${LANG:-C}}} languages chinese english
  REPLY=en
  [[ $locale != C && $locale != POSIX ]] || return 0
  languages=:${LANGUAGE:-$locale}
  chinese=${languages%%:zh*} english=${languages%%:en*} # what is before the first of each
  ((${#chinese} >= ${#english})) || REPLY=zh
}

# language::_typed WORD...: what the user typed as the value of --lang, in REPLY; empty if nothing. bash translates while
# it reads a file, so this must be known before the command line is parsed. What follows a program, that is -m or a file
# without an option before it, is the program's.
language::_typed() {
  local before=''
  REPLY=''
  while (($#)) && [[ $1 != @(--|-m) && -z $REPLY ]]; do
    case $1 in
      --lang=*) REPLY=${1#*=} ;;
      --lang) REPLY=${2-} ;;
      *.py | *.sh) [[ $before == --* ]] || break ;;
    esac
    before=$1
    shift
  done
}

# language::choose WORD...: the user typed WORDs. Call it before other files with messages are read. TEXTDOMAIN of the
# caller has been put aside: bash would run what is in those translations.
language::choose() {
  language::_typed "$@"
  [[ $REPLY == @(zh|en) ]] || REPLY=${LAUNCH_LANG-}
  if [[ $REPLY == @(zh|en) ]]; then
    export LAUNCH_LANG=$REPLY
  else
    language::_of_locale
    LAUNCH_LANG=$REPLY
    [[ $REPLY == en ]] || export LAUNCH_LANG # of English our Python learns from the locale; ranks need not know
  fi
  [[ $LAUNCH_LANG == zh ]] || return 0
  # shellcheck disable=SC2034 # bash itself reads them
  TEXTDOMAIN=launch TEXTDOMAINDIR=$LAUNCH_ROOT/hccl_tools/locale
  if [[ -n ${LANGUAGE-} && $LANGUAGE != zh* ]]; then
    # gettext looks at it first, and as it was when this bash started: so start again
    own_shell::keep LANGUAGE "$LANGUAGE"
    LANGUAGE=zh
    exec "$BASH" -- "$0" "$@"
  fi
  # shellcheck source=scripts/lib/language_probe.sh
  source "$LAUNCH_LIB/language_probe.sh"
  [[ $REPLY != zh ]] || return 0
  # This machine lacks the caller's locale, or it is C.  Nearly every machine has C.UTF-8, whose folder leads to zh.
  [[ -z ${LC_ALL+set} ]] || own_shell::keep LC_ALL "$LC_ALL"
  LC_ALL=C.UTF-8
}

language::choose "$@"
