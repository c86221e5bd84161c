"""The coordinator as a program: it leads or stands by, decides on events, writes to the store."""
