"""`python -m geokfp.pipelines._command_line`: the `geokfp` command where scripts are not on PATH."""

from . import main

main()
