"""The machine below: its memory, processors and disk, what is left of them, and the alarms when it is too little."""
