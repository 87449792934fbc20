# shellcheck shell=bash disable=SC2034
# What bash makes of a text for translation: zh in REPLY, or en where the locale does not allow it.
REPLY=$"en"
