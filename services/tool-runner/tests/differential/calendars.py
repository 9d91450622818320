"""Calendars made at random, and what recurring-ical-events finds in them.

Each file is made twice: as some program writes it (ours) and as RFC 5545 wants it (theirs), which is the same but where the
library is known to read otherwise than the RFC or cannot read at all. Those places are the functions that are named rule_*.
"""
import itertools
import random
import warnings
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events
from dateutil.rrule import rrulestr

warnings.simplefilter("ignore")
UTC = timezone.utc
HOME = "Europe/Berlin"
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Kolkata", "America/Sao_Paulo"]
ODD_ZONES = {
    "/mozilla.org/20050126_1/Europe/Berlin": "Europe/Berlin",
    "/freeassociation.sourceforge.net/America/New_York": "America/New_York",
    "/softwarestudio.org/Olson_20011030_5/Australia/Sydney": "Australia/Sydney",
    "/citadel.org/20260101_1/America/Argentina/Buenos_Aires": "America/Argentina/Buenos_Aires",
    "W. Europe Standard Time": "Europe/Berlin",
    "Eastern Standard Time": "America/New_York",
    "India Standard Time": "Asia/Kolkata",
    "(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna": "Europe/Berlin",
    "GMT+0100": "Etc/GMT-1",
    "GMT-0300": "Etc/GMT+3",
    "UTC+02:00": "Etc/GMT-2",
    "america/new_york": "America/New_York",
}
# The same as Berlin's in the years that are looked at. With names: without them the library takes times for floating ones.
BY_RULE = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:STANDARD
DTSTART:19961027T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
TZNAME:CET
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:19960331T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
TZNAME:CEST
END:DAYLIGHT
END:VTIMEZONE"""
BY_LIST = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:STANDARD
DTSTART:20231029T030000
RDATE:20241027T030000,20251026T030000
RDATE:20261025T030000
RDATE:20271031T030000,20281029T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
TZNAME:CET
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:20240331T020000
RDATE:20250330T020000,20260329T020000,20270328T020000,20280326T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
TZNAME:CEST
END:DAYLIGHT
END:VTIMEZONE"""
WITHOUT_RULE = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0530
TZOFFSETTO:+0530
TZNAME:IST
END:STANDARD
END:VTIMEZONE"""
ALIKE = {BY_RULE: "Europe/Berlin", BY_LIST: "Europe/Berlin", WITHOUT_RULE: "Asia/Kolkata"}


class Both:
    """Lines of ours and of theirs."""

    def __init__(self):
        self.ours, self.theirs = [], []

    def add(self, ours, theirs=None):
        """A line; theirs is the same unless it is given, and none when it is empty."""
        self.ours.append(ours)
        theirs = ours if theirs is None else theirs
        if theirs:
            self.theirs.append(theirs)

    def extend(self, both):
        self.ours += both.ours
        self.theirs += both.theirs


class Clock:
    """The kind of time that an event has."""

    def __init__(self, rng, calendar_zone):
        self.calendar_zone = calendar_zone
        self.kind = rng.choice(["zone"] * 6 + ["odd", "own", "own", "utc", "utc", "floating", "day", "day", "day"])
        self.name, self.plain, self.rules = None, None, None
        if self.kind == "zone":
            self.name = self.plain = rng.choice(ZONES)
        elif self.kind == "odd":
            self.name = rng.choice(list(ODD_ZONES))
            self.plain = ODD_ZONES[self.name]
        elif self.kind == "own":
            rules = rng.choice(list(ALIKE))
            self.name, self.plain = f"Own Zone {rng.randrange(3)}{len(rules)}", ALIKE[rules]
            self.rules = rules.format(name=self.name)

    @property
    def is_day(self):
        return self.kind == "day"

    def zone(self):
        # Times without a zone are in the one that the calendar names.
        return ZoneInfo(self.plain or self.calendar_zone or "UTC")

    def both(self, name, wall, more=""):
        """A property with this time on the wall."""
        if self.is_day:
            text = f"{name};VALUE=DATE{more}:{wall:%Y%m%d}"
            return text, text
        if self.kind == "utc":
            text = f"{name}{more}:{wall:%Y%m%dT%H%M%SZ}"
            return text, text
        if self.kind == "floating":
            text = f"{name}{more}:{wall:%Y%m%dT%H%M%S}"
            return text, text
        quoted = f'"{self.name}"' if not self.name.replace("/", "").replace("_", "").isalnum() else self.name
        ours = f"{name}{more};TZID={quoted}:{wall:%Y%m%dT%H%M%S}"
        return ours, rule_name_of_zone(self, f"{name}{more};TZID=%s:{wall:%Y%m%dT%H%M%S}")

    def utc(self, wall):
        if self.kind == "utc":
            return wall
        return wall.replace(tzinfo=self.zone()).astimezone(UTC).replace(tzinfo=None)


def rule_name_of_zone(clock, text):
    """RFC 5545, 3.2.19: names are not standardized. The library knows some of these and not the others."""
    return text % (clock.name if clock.kind == "own" else clock.plain)


def rule_until(clock, until, floating_to_utc=False):
    """RFC 5545, 3.3.10: UNTIL is of the type of DTSTART, and in UTC if that has a zone. A date means all of that day, a time
    without Z the clock of DTSTART; the library takes midnight and UTC."""
    if isinstance(until, datetime):
        wall = until
    else:
        wall = datetime.combine(until, time(23, 59, 59))
    return f"{clock.utc(wall):%Y%m%dT%H%M%SZ}" if clock.name or clock.kind == "utc" else f"{wall:%Y%m%dT%H%M%S}"


def rule_exrule(rule, start):
    """RFC 2445, 4.8.5.2: EXRULE excludes what its rule gives. RFC 5545 has done away with it, and so has the library."""
    return list(itertools.takewhile(lambda wall: wall.year < 2028, rrulestr(rule, dtstart=start)))


def rule_length(start, end, component):
    """RFC 5545, 3.8.5.3: of a series given with DTEND all have the same exact length, of one with DURATION the same nominal
    one. The library reckons with what clocks show."""
    days, seconds, wall = (int(number) for number in str(component["X-LENGTH"]).split("/"))
    shown = end.replace(tzinfo=None) - start.replace(tzinfo=None)
    if shown != timedelta(seconds=wall):
        days, seconds = 0, shown.total_seconds()  # a period
    later = (start.replace(tzinfo=None) + timedelta(days=days)).replace(tzinfo=start.tzinfo)
    return later.astimezone(UTC) + timedelta(seconds=seconds)


def make_rule(rng, start, clock):
    """A rule with its last time left open, whether it has several times a day, and its largest number of occurrences."""
    freq = rng.choice(["YEARLY", "MONTHLY", "MONTHLY", "WEEKLY", "WEEKLY", "WEEKLY", "DAILY", "DAILY", "HOURLY"])
    if freq == "HOURLY" and (clock.is_day or clock.rules):
        freq = "DAILY"
    parts, several = [f"FREQ={freq}"], False
    if rng.random() < 0.4:
        parts.append(f"INTERVAL={rng.randint(1, 4)}")
    some_days = lambda most: ",".join(sorted(rng.sample(DAYS, rng.randint(1, most))))
    nth = lambda most: f"{rng.choice([-2, -1, 1, 2, 3, most])}{rng.choice(DAYS)}"
    if freq == "HOURLY":
        several = True
        parts = ["FREQ=HOURLY", f"INTERVAL={rng.randint(5, 30)}"]
    elif freq == "DAILY":
        if rng.random() < 0.3:
            parts.append(f"BYMONTH={rng.randint(1, 12)},{rng.randint(1, 12)}")
        if rng.random() < 0.2:
            parts.append(f"BYDAY={some_days(3)}")
    elif freq == "WEEKLY":
        if rng.random() < 0.6:
            parts.append(f"BYDAY={some_days(4)}")
        if rng.random() < 0.4:
            parts.append(f"WKST={rng.choice(DAYS)}")
        if "BYDAY" in parts[-1] and rng.random() < 0.2:
            parts.append(f"BYSETPOS={rng.choice([1, -1, 2])}")
    elif freq == "MONTHLY":
        kind = rng.randrange(5)
        if kind == 0:
            parts.append(f"BYMONTHDAY={rng.choice([-3, -1, 1, 15, 29, 30, 31])}")
        elif kind == 1:
            parts.append(f"BYDAY={nth(4)}")
        elif kind == 2:
            parts.append(f"BYDAY={','.join(DAYS[:rng.randint(2, 7)])};BYSETPOS={rng.choice([-1, 1, 2, -2, '1,-1'])}")
        elif kind == 3:
            parts.append(f"BYDAY={rng.choice(DAYS)};BYMONTHDAY=8,9,10,11,12,13,14")
    else:
        kind = rng.randrange(7)
        if kind == 0:
            parts.append(f"BYMONTH={rng.randint(1, 12)};BYDAY={nth(4)}")
        elif kind == 1:
            parts.append(f"BYDAY={rng.choice([-10, -1, 1, 20])}{rng.choice(DAYS)}")
        elif kind == 2:
            parts.append(f"BYWEEKNO={rng.choice([1, 20, 53, -1])};BYDAY={some_days(2)}")
            parts.append(f"WKST={rng.choice(['MO', 'SU'])}")
        elif kind == 3:
            parts.append(f"BYYEARDAY={rng.choice([1, 100, 366, -1])}")
        elif kind == 4:
            parts.append(f"BYMONTH={rng.randint(1, 6)},{rng.randint(7, 12)}")
        elif kind == 5:
            parts.append(f"BYMONTH=2;BYMONTHDAY={rng.choice([28, 29, -1])}")
    if freq not in ("HOURLY",) and not clock.is_day and rng.random() < 0.1 and clock.kind in ("utc", "floating"):
        several = True
        parts.append("BYHOUR=6,18;BYMINUTE=0,30")
    return parts, several


class Event:
    """An event of the generator, with its versions and changes."""

    def __init__(self, rng, number, calendar_zone):
        self.rng, self.number, self.calendar_zone = rng, number, calendar_zone
        self.clock = Clock(rng, calendar_zone)
        day = date(2024, 1, 1) + timedelta(days=rng.randrange(900))
        # RFC 5545, 3.3.5: a time that the clock skips is as much later. The library has that of a zone with rules of its own
        # earlier, so there is none.
        hour = rng.choice([0, 9, 12, 18, 23] if self.clock.rules else [0, 2, 2, 3, 9, 12, 18, 23])
        self.start = datetime.combine(day, time(0 if self.clock.is_day else hour, 0 if self.clock.is_day else rng.choice([0, 30])))
        if rng.random() < 0.1 and not self.clock.is_day and not self.clock.rules:
            # Around the nights on which Berlin's clock changes.
            self.start = datetime.combine(rng.choice([date(2026, 3, 27), date(2025, 10, 24), date(2026, 3, 29)]), time(2, 30))
        self.notes, self.several = [], False
        self.occurrences = [self.start]

    def length(self, both, start):
        """DTEND or DURATION for a start on the wall; writes how long it is for theirs."""
        rng = self.rng
        kind = rng.choice(["end"] * 4 + ["duration"] * 3 + ["none", "backwards", "negative"])
        if self.clock.is_day:
            days = rng.randint(1, 3)
            if kind == "end":
                if rng.random() < 0.2:
                    # RFC 5545, 3.6.1: DTEND is not inclusive, so a day that ends on itself is meant to be one day.
                    ours, _ = self.clock.both("DTEND", start)
                    both.add(ours, self.clock.both("DTEND", start + timedelta(days=1))[1])
                    days = 1
                else:
                    both.add(*self.clock.both("DTEND", start + timedelta(days=days)))
            elif kind == "duration":
                both.add(f"DURATION:{rng.choice([f'P{days}D', f'PT{24 * days}H'])}")
            else:
                days = 1
            self.lengths(both, days, 0, days * 86400)
            return
        wall = rng.choice([1800, 3600, 7200, 86400, 90000])
        if kind == "end":
            end = start + timedelta(seconds=wall)
            both.add(*self.clock.both("DTEND", end))
            exact = (self.clock.utc(end) - self.clock.utc(start)).total_seconds()
            self.lengths(both, 0, int(exact), wall)
        elif kind == "duration":
            days, seconds = rng.choice([(0, 1800), (0, 5400), (0, 90000), (1, 3600), (7, 0), (2, 0)])
            text = "P1W" if days == 7 else f"P{f'{days}D' if days else ''}{f'T{seconds}S' if seconds else ''}"
            both.add(f"DURATION:{text}")
            self.lengths(both, days, seconds, days * 86400 + seconds)
        elif kind in ("backwards", "negative") and not self.has_rule:
            both.add(*(self.clock.both("DTEND", start - timedelta(hours=5)) if kind == "backwards" else ("DURATION:-PT5H",)))
            exact = (self.clock.utc(start) - self.clock.utc(start - timedelta(hours=5))).total_seconds()
            self.lengths(both, 0, int(exact), 5 * 3600)
            self.notes.append("DTEND" if kind == "backwards" else "DURATION")
        else:
            self.lengths(both, 0, 0, 0)

    @staticmethod
    def lengths(both, days, seconds, wall):
        both.theirs.append(f"X-LENGTH:{days}/{seconds}/{wall}")

    def master(self, title, sequence, stamp):
        rng, both, clock = self.rng, Both(), self.clock
        both.add("BEGIN:VEVENT")
        both.add(f"UID:event-{self.number}")
        both.add(f"SUMMARY:{title}")
        both.add(f"DTSTAMP:{stamp}")
        if sequence is not None:
            both.add(f"SEQUENCE:{sequence}")
        both.add(*clock.both("DTSTART", self.start))
        if rng.random() < 0.05:
            both.add("STATUS:CANCELLED")
        self.has_rule = rng.random() < 0.75
        self.length(both, self.start)
        if self.has_rule:
            self.rules(both)
        if rng.random() < 0.25:
            self.further(both)
        if self.clock.kind == "utc" and self.calendar_zone:
            # On the clock of the calendar it recurs at other times.
            self.occurrences = [self.start]
        if self.has_rule and self.is_clear and rng.random() < 0.4:
            self.except_dates(both)
        both.add("END:VEVENT")
        return both

    @property
    def is_clear(self):
        """Whether a time on the wall names one occurrence. To the library it also names the one at that time in Greenwich."""
        return not self.several or self.clock.kind in ("utc", "floating")

    def rules(self, both):
        rng, clock = self.rng, self.clock
        for _ in range(2 if rng.random() < 0.15 else 1):
            kind = rng.random()
            if kind < 0.03:
                both.add(rng.choice(["RRULE:", "RRULE:FREQ=SOMETIMES", "RRULE:BYDAY=MO", "RRULE:FREQ=DAILY;BYMOON=1"]), "")
                self.notes.append("RRULE")
                continue
            parts, several = make_rule(rng, self.start, clock)
            self.several |= several
            ours, theirs = list(parts), list(parts)
            ends = rng.choice(["count", "until", "until", "open"])
            if several or ends == "count":
                count = rng.randint(1, 40)
                if not several and rng.random() < 0.1:
                    count = rng.choice([0, -1, -5])
                    self.notes.append("RRULE")
                ours.append(f"COUNT={count}")
                # A count below 0 is none; the library chokes on it where it stands last.
                theirs += [f"COUNT={count}"] if count >= 0 else []
            elif ends == "until":
                self.until(ours, theirs)
            rng.shuffle(ours)
            both.add("RRULE:" + ";".join(ours), "RRULE:" + ";".join(theirs))
            series = rrulestr(";".join(part for part in parts), dtstart=self.start)
            self.occurrences += list(itertools.islice(series, 12))
        if rng.random() < 0.06 and not self.several and not self.calendar_zone:
            rule = rng.choice(["FREQ=MONTHLY;BYMONTHDAY=1,2,3,4,5", "FREQ=WEEKLY;BYDAY=MO", "FREQ=DAILY;INTERVAL=5"])
            both.ours.append(f"EXRULE:{rule}")
            excluded = rule_exrule(rule, self.start)
            both.theirs += [clock.both("EXDATE", wall)[1] for wall in excluded]
            # A change of what a rule excludes is shown here, one of what a list excludes is not.
            self.occurrences = [wall for wall in self.occurrences if wall not in excluded] or [self.start]

    def until(self, ours, theirs):
        rng, clock = self.rng, self.clock
        last = self.start + timedelta(days=rng.randint(-20, 500))
        form = rng.choice(["date", "utc", "wall"])
        if clock.is_day:
            text = f"{last:%Y%m%d}" if form == "date" else f"{last:%Y%m%d}T120000Z"
            ours.append(f"UNTIL={text}")
            theirs.append(f"UNTIL={last:%Y%m%d}")
        elif clock.kind == "floating" and not self.calendar_zone:
            until = last.date() if form == "date" else last
            ours.append(f"UNTIL={until:%Y%m%d}" if form == "date" else f"UNTIL={last:%Y%m%dT%H%M%S}")
            theirs.append(f"UNTIL={rule_until(clock, until)}")
        elif clock.kind in ("floating", "utc"):
            # In a calendar with a zone of its own these are on its clock.
            zone = ZoneInfo(self.calendar_zone or "UTC")
            wall = last.replace(tzinfo=zone) if clock.kind == "floating" else last.replace(tzinfo=UTC)
            ours.append(f"UNTIL={wall.astimezone(UTC):%Y%m%dT%H%M%SZ}")
            theirs.append(ours[-1])
        else:
            until = last.date() if form == "date" else last
            utc = rule_until(clock, until)
            ours.append({"date": f"UNTIL={until:%Y%m%d}", "utc": f"UNTIL={utc}", "wall": f"UNTIL={last:%Y%m%dT%H%M%S}"}[form])
            theirs.append(f"UNTIL={utc}")

    def further(self, both):
        rng, clock = self.rng, self.clock
        for _ in range(rng.randint(1, 2)):
            wall = self.start + timedelta(days=rng.randint(1, 300))
            if clock.is_day:
                more = wall + timedelta(days=2)
                both.add(f"RDATE;VALUE=DATE:{wall:%Y%m%d},{more:%Y%m%d}")
                continue
            wall = wall.replace(hour=12, minute=17)
            ours, theirs = clock.both("RDATE", wall)
            kind = rng.choice(["time", "time", "list", "period", "period to", "date"])
            if kind == "list":
                further = f",{wall + timedelta(days=3):%Y%m%dT%H%M%S}" + ("Z" if clock.kind == "utc" else "")
                both.add(ours + further, theirs + further)
            elif kind.startswith("period"):
                if kind == "period":
                    end = rng.choice(["PT20M", "PT3H"])
                else:
                    end = f"{wall + timedelta(minutes=40):%Y%m%dT%H%M%S}" + ("Z" if clock.kind == "utc" else "")
                both.add(
                    ours.replace("RDATE", "RDATE;VALUE=PERIOD", 1) + "/" + end,
                    theirs.replace("RDATE", "RDATE;VALUE=PERIOD", 1) + "/" + end,
                )
            elif kind == "date" and clock.name:
                both.add(f"RDATE;VALUE=DATE:{wall:%Y%m%d}")
            else:
                both.add(ours, theirs)

    def except_dates(self, both):
        rng, clock = self.rng, self.clock
        for _ in range(rng.randint(1, 3)):
            wall = rng.choice(self.occurrences)
            form = rng.choice(["same", "same", "utc", "floating", "date", "list"])
            if clock.is_day:
                ours, theirs = clock.both("EXDATE", wall)
                if rng.random() < 0.3:
                    # RFC 5545, 3.8.5.1: of the type of DTSTART. A time of day stands for its day.
                    ours = f"EXDATE;TZID=Europe/Berlin:{wall:%Y%m%d}T{rng.choice(['000000', '090000'])}"
                both.add(ours, theirs)
            elif form == "utc" and clock.name and clock.rules is None:
                both.add(f"EXDATE:{clock.utc(wall):%Y%m%dT%H%M%SZ}")
            elif form == "floating" and clock.name:
                # RFC 5545, 3.8.5.1: it is of the type of DTSTART, and has its zone.
                both.add(f"EXDATE:{wall:%Y%m%dT%H%M%S}", clock.both("EXDATE", wall)[1])
            elif form == "date" and not self.several and clock.name:
                both.add(f"EXDATE;VALUE=DATE:{wall:%Y%m%d}")
            elif form == "list":
                other = rng.choice(self.occurrences)
                ours, theirs = clock.both("EXDATE", wall)
                further = f",{other:%Y%m%dT%H%M%S}" + ("Z" if clock.kind == "utc" else "")
                both.add(ours + further, theirs + further)
            else:
                both.add(*clock.both("EXDATE", wall))

    def change(self, index, sequence, wall):
        rng, both, clock = self.rng, Both(), self.clock
        both.add("BEGIN:VEVENT")
        both.add(f"UID:event-{self.number}")
        both.add(f"SUMMARY:{self.number} changed {index}")
        both.add("DTSTAMP:20240101T000000Z")
        both.add(f"SEQUENCE:{sequence}")
        # RFC 5545, 3.2.13: in a calendar with X-WR-TIMEZONE the library loses RANGE.
        clear = not self.several and not self.twice and not self.calendar_zone
        onward = ";RANGE=THISANDFUTURE" if rng.random() < 0.2 and clear else ""
        ours, theirs = clock.both("RECURRENCE-ID", wall, onward)
        if self.twice:
            # Twice the same: to the library two forms of one time are two occurrences.
            pass
        elif clock.is_day and rng.random() < 0.4:
            # RFC 5545, 3.8.4.4: of the type of DTSTART. A time of day stands for its day.
            ours = f"RECURRENCE-ID{onward};TZID=America/New_York:{wall:%Y%m%d}T{rng.choice(['000000', '083000'])}"
        elif not clock.is_day and not self.several and rng.random() < 0.15:
            ours = f"RECURRENCE-ID{onward};VALUE=DATE:{wall:%Y%m%d}"
        elif clock.name and clock.rules is None and rng.random() < 0.3:
            ours = theirs = f"RECURRENCE-ID{onward}:{clock.utc(wall):%Y%m%dT%H%M%SZ}"
        both.add(ours, theirs)
        start = wall + timedelta(days=rng.choice([0, 0, 1, -1, 5]), minutes=0 if clock.is_day else rng.choice([0, 60, -90]))
        both.add(*clock.both("DTSTART", start))
        self.has_rule = True
        self.length(both, start)
        if rng.random() < 0.1:
            both.add("STATUS:CANCELLED")
        both.add("END:VEVENT")
        return both

    def make(self):
        """The components of the event, each as lines."""
        rng = self.rng
        parts = []
        versions = rng.choice([1, 1, 1, 1, 2, 3])
        masters = []
        for version in range(versions):
            before = list(self.notes)
            self.occurrences, self.several = [self.start], False
            masters.append(self.master(f"{self.number} v{version}", version if versions > 1 else None, "20240101T000000Z"))
            if version + 1 < versions:
                # Also of a version that does not count the notes are kept.
                self.notes = before
        parts += masters
        if rng.random() < 0.4 and len(self.occurrences) > 1 and self.is_clear:
            walls = sorted(set(self.occurrences))
            walls = rng.sample(walls, min(len(walls), rng.randint(1, 3)))
            self.twice = rng.random() < 0.2
            if self.twice:
                walls = [walls[0]] * 2
            for index, wall in enumerate(walls):
                parts.append(self.change(index, versions + rng.randint(0, 3), wall))
        rng.shuffle(parts)
        return parts


def fold(rng, line):
    if len(line) <= 40 or rng.random() < 0.7:
        return line
    at = rng.randrange(10, len(line))
    return line[:at] + "\r\n" + rng.choice([" ", "\t"]) + line[at:]


def make_file(rng):
    """Ours, theirs, and the properties that notes must name."""
    ours, theirs, notes = [], [], []
    for calendar in range(rng.choice([1, 1, 1, 1, 2])):
        calendar_zone = rng.choice(ZONES) if rng.random() < 0.12 else None
        head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN"]
        if calendar_zone:
            head.append(f"X-WR-TIMEZONE:{calendar_zone}")
        events = [Event(rng, calendar * 10 + number, calendar_zone) for number in range(rng.randint(1, 3))]
        made = [part for event in events for part in event.make()]
        zones = {event.clock.rules for event in events if event.clock.rules}
        names = {}
        for zone in sorted(zones):
            names[zone.splitlines()[1]] = zone
        zones = [line for zone in names.values() for line in zone.splitlines()]
        ours += head + zones + [line for part in made for line in part.ours]
        theirs += head + zones + [line for part in made for line in part.theirs] + ["END:VCALENDAR"]
        if rng.random() > 0.04:
            ours.append("END:VCALENDAR")
        else:
            notes.append("END:VCALENDAR")
        notes += [note for event in events for note in event.notes]
    if rng.random() < 0.1:
        ours = [line.replace("DTSTART", "dtstart").replace("RRULE:", "rrule:") for line in ours]
    end = rng.choice(["\r\n", "\r\n", "\n"])
    text = end.join(fold(rng, line).replace("\r\n", end) for line in ours) + end
    return text, "\r\n".join(theirs) + "\r\n", sorted(set(notes))


def shown(component):
    start, end = component["DTSTART"].dt, component["DTEND"].dt
    title = str(component["SUMMARY"])
    if not isinstance(start, datetime):
        if isinstance(end, datetime):
            end = end.date()
        return [start.isoformat(), max(end, start + timedelta(days=1)).isoformat(), title]
    home = ZoneInfo(HOME)
    # Without a zone the length is what clocks show.
    exact = rule_length(start, end, component) if start.tzinfo else end.replace(tzinfo=home)
    start = start if start.tzinfo else start.replace(tzinfo=home)
    # RFC 5545, 3.3.5: a start that the clock skips is as much later, which may be behind the end.
    return [int(start.timestamp()), max(int(start.timestamp()), int(exact.timestamp())), title]


def occurrences(text, begin, until):
    """What the library finds that begins within the two moments."""
    home = ZoneInfo(HOME)
    inside = lambda start: begin <= (start if isinstance(start, datetime) else datetime.combine(start, time())).replace(
        tzinfo=getattr(start, "tzinfo", None) or home) < until
    found = []
    for calendar in icalendar.Calendar.from_ical(text, multiple=True):
        query = recurring_ical_events.of(calendar)
        for component in query.between(begin - timedelta(days=9), until + timedelta(days=9)):
            if str(component.get("STATUS", "")) != "CANCELLED" and inside(component["DTSTART"].dt):
                found.append(shown(component))
    return sorted(found, key=str)


def case(seed):
    rng = random.Random(seed)
    ours, theirs, notes = make_file(rng)
    begin = datetime(2026, 1, 1, tzinfo=ZoneInfo(HOME)) + timedelta(days=rng.randrange(-300, 300))
    until = begin + timedelta(days=rng.choice([1, 7, 60, 250]))
    return {
        "kind": "calendar",
        "seed": seed,
        "text": ours,
        "theirs": theirs,
        "from": int(begin.timestamp()),
        "until": int(until.timestamp()),
        "expected": occurrences(theirs, begin, until),
        "notes": notes,
    }
