/**
 * What the API sends, as the page relies on it.
 *
 * @typedef {object} Signal
 * @property {string} name
 * @property {string[]} features
 * @property {string | null} unit
 * @property {string | null} template
 * @property {string | null} last_time
 * @property {string | null} last_arrival
 * @property {(number | null)[]} value
 * @property {number | null} p
 * @property {number | null} severity
 * @property {boolean} alarm
 * @property {boolean} warm
 * @property {number} observations
 * @property {number} warm_up
 * @property {number} own_past_after
 * @property {boolean} silent
 * @property {number | null} [incident] the open incident; only of one signal
 * @property {boolean} [maintenance] whether its newest observation is in a maintenance window
 * @property {string | null} quarantined why its detector cannot be rebuilt
 * @property {string | null} [warning] what is wrong with its sampling; only of one signal
 * @property {number | null} alarm_rate null while it is quarantined
 * @property {"incidents" | "observations"} promise what the alarm rate counts
 * @property {Recent[] | null} recent null where they are not loaded yet
 * @property {number | null} [pace] the usual seconds between observations, where `recent` need not be there
 * @property {Reference | null} [reference] what it is compared with in place of its own past
 *
 * @typedef {object} Reference a stretch that somebody says was good
 * @property {string} start
 * @property {string} end
 * @property {number} observations
 * @property {string} created
 * @property {string} created_by
 *
 * @typedef {[string, number | null, number | null, boolean]} Recent time, value of the first feature, p, alarm
 *
 * @typedef {object} Verdict without a verdict (late, maintenance) most is missing
 * @property {string} signal
 * @property {string} time
 * @property {string} status
 * @property {(number | null)[] | number | null} [value]
 * @property {(number | null)[] | number | null} [forecast]
 * @property {(number | null)[] | number | null} [low]
 * @property {(number | null)[] | number | null} [high]
 * @property {number | null} [p]
 * @property {number | null} [severity]
 * @property {boolean} [alarm]
 * @property {boolean} [warm]
 * @property {number} [observations]
 *
 * @typedef {object} Incident
 * @property {number} id
 * @property {string} signal
 * @property {"alarm" | "silence" | "range" | "limit"} kind
 * @property {string} start
 * @property {string} end
 * @property {string | null} peak
 * @property {number} alarms
 * @property {number} duration
 * @property {number | null} p
 * @property {number | null} severity
 * @property {"info" | "warning" | "critical"} level how urgent it is
 * @property {number | null} return_period in observations
 * @property {number} seen how many observations of the signal came before it
 * @property {string | null} began_earliest
 * @property {string | null} began_latest
 * @property {string | null} view the view that says most
 * @property {string | null} explanation what was seen, in words
 * @property {string | null} direction
 * @property {number | null} rarity minus the log rate per observation: it orders incidents
 * @property {string | null} side on which side of its forecast it began
 * @property {number | null} deviation
 * @property {Record<string, number>} features
 * @property {Record<string, number | null>} feature_p of each feature at the peak
 * @property {string[]} suspects the features that contributed most and cannot be told apart
 * @property {string | null} advice what would have shown it sooner
 * @property {boolean} below_minimum whether nobody is told of it because of the signal's minimum
 * @property {boolean} open
 * @property {string} opened
 * @property {string | null} closed
 * @property {string | null} ended why it closed; null while it is open, or if the reason is unknown
 * @property {string | null} acknowledged
 * @property {string | null} acknowledged_by
 * @property {string | null} snoozed_until
 * @property {string | null} label
 * @property {string | null} note
 * @property {string | null} alike incidents of a signal with the same of this are alike
 * @property {number} occurrence its number among those like it
 * @property {string | null} first_alike the start of the first one like it
 * @property {boolean} holds whether its label holds for the next ones like it
 * @property {number | null} label_of the incident like it whose label it has
 * @property {boolean} suppressed whether nobody is told of it because of that label
 * @property {string | null} given_back since when it no longer counts as a false incident
 * @property {boolean} excluded
 * @property {boolean} withheld whether it is not reported to sinks, because a budget is for rarer incidents
 * @property {number | null} event the event that it belongs to
 *
 * @typedef {object} Member an incident of an event, in short
 * @property {number} incident
 * @property {string} signal
 * @property {string} start
 * @property {number | null} severity
 * @property {boolean} open
 *
 * @typedef {object} Event incidents that belong together
 * @property {number} id
 * @property {"alarm" | "silence" | "range" | "limit"} kind
 * @property {string} title
 * @property {"info" | "warning" | "critical"} level how urgent it is
 * @property {string | null} source the source that all its silent signals come from
 * @property {string | null} place what the names of all its signals begin with
 * @property {string[]} places those of its signals, that of the strongest first
 * @property {number} count how many incidents
 * @property {number} signals on how many signals
 * @property {number} open_count how many of them are open
 * @property {Member} first
 * @property {Member} strongest
 * @property {string} start
 * @property {string} last_start
 * @property {boolean} open
 * @property {string} opened
 * @property {string | null} closed
 * @property {string | null} acknowledged
 * @property {string | null} acknowledged_by
 * @property {string | null} snoozed_until
 * @property {string | null} label
 * @property {string | null} note
 * @property {Incident[]} [members] in the order of their start; only of one event
 * @property {Suspect[]} [suspects]
 *
 * @typedef {object} Suspect a signal that moved early in an event
 * @property {string} signal
 * @property {string} start
 * @property {number} seconds_after_first
 * @property {number} past_incidents
 * @property {{signal: string, times: number}[]} together
 *
 * @typedef {object} Causes which signal of an event moved first
 * @property {string} text
 * @property {string | null} first
 * @property {number | null} p
 * @property {number | null} lead_seconds
 * @property {Mover[]} signals in the order in which they began to move
 *
 * @typedef {object} Mover
 * @property {string} signal
 * @property {string} earliest
 * @property {string} latest
 * @property {number | null} score how far it went, in units of its spread before
 * @property {string[]} needed_by the signals that depend on it
 *
 * @typedef {object} History columns; value, forecast, low and high have one for each feature
 * @property {string[]} times
 * @property {(number | null)[][]} value
 * @property {(number | null)[][]} forecast
 * @property {(number | null)[][]} low
 * @property {(number | null)[][]} high
 * @property {(number | null)[]} p
 * @property {boolean[]} alarm
 * @property {boolean[]} warm
 * @property {string[]} status
 * @property {boolean} thinned whether observations in between were left out
 *
 * @typedef {object} Audit
 * @property {number} promised
 * @property {number | null} rate
 * @property {number} observations
 * @property {number} alarms
 * @property {number | null} low
 * @property {number | null} high
 * @property {number} level
 * @property {string} finding
 * @property {number} faults
 * @property {number | null} ratio
 * @property {number | null} since
 * @property {string} unit
 *
 * @typedef {object} Details
 * @property {(number | null)[][]} weights
 * @property {number} window
 * @property {Audit} audit
 * @property {string} guarantee
 * @property {Record<string, any>} settings
 * @property {number | null} silent_after
 * @property {Rules} rules
 * @property {number} memory_bytes
 *
 * @typedef {[number | null, number | null]} Bounds
 *
 * @typedef {object} Rules what is told and learned, in the signal's unit
 * @property {Bounds | Record<string, Bounds> | null} valid_range
 * @property {number | Record<string, number> | null} limit_high
 * @property {number | Record<string, number> | null} limit_low
 * @property {number | null} min_deviation
 * @property {number | null} min_level
 * @property {boolean | null} no_data_is_zero
 *
 * @typedef {object} Template settings of signals whose names match a pattern
 * @property {string} match
 * @property {string[] | null} features
 * @property {number | null} silent_after
 * @property {string | null} unit
 * @property {Bounds | Record<string, Bounds> | null} valid_range
 * @property {number | Record<string, number> | null} limit_high
 * @property {number | Record<string, number> | null} limit_low
 * @property {number | null} min_deviation
 * @property {number | null} min_level
 * @property {boolean | null} no_data_is_zero
 * @property {number | null} every
 * @property {string} aggregate
 * @property {boolean} peers
 * @property {Record<string, any>} detector
 *
 * @typedef {object} Listed where a template is from
 * @property {boolean} stored false: from the settings file
 * @property {Template | null} file the template of the file whose place it takes
 * @property {string | null} changed
 * @property {string | null} changed_by
 * @property {string | null} problem why it is not in force
 *
 * @typedef {Template & Listed} ListedTemplate
 *
 * @typedef {object} Maintenance
 * @property {number} id
 * @property {string} pattern
 * @property {string} start
 * @property {string | null} end null: it recurs until it is removed
 * @property {string} reason
 * @property {string} created_by
 * @property {string | null} schedule when it recurs, as in cron; null: it lasts from start to end
 * @property {number | null} duration how many seconds it then lasts
 * @property {string | null} time_zone
 * @property {{start: string, end: string}[]} occurrences the next ones, if it recurs
 */
export {};
